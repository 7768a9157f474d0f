# attnd in a container: built in one stage, run in another that holds only what it loads.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS build
WORKDIR /src
COPY bootstrap.sh ./
RUN ./bootstrap.sh build
COPY Makefile VERSION README.md CHANGELOG.md LICENSE ./
COPY lib lib
COPY server server
COPY config config
COPY doc doc
COPY systemd systemd
RUN make -j"$(nproc)" all && make install PREFIX=/usr DESTDIR=/out

FROM ${BASE}
ARG VERSION=unknown
LABEL org.opencontainers.image.title="attnd" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.description="Attention-serving daemon: sequences in over HTTP, context vectors and attention weights out" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      libmicrohttpd12 libjansson4 libuv1 libopenblas0-pthread libinih1 libsystemd0 zlib1g libutf8proc2 libpcre2-8-0 \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* \
 && useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin attnd
COPY --from=build /out/usr/bin /usr/bin
COPY --from=build /out/usr/share/attnd /usr/share/attnd
COPY --from=build /out/etc /etc
USER attnd
# OpenBLAS starts no threads of its own; attnd has workers.
ENV ATTND_LISTEN=0.0.0.0:8080 OPENBLAS_NUM_THREADS=1
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["attnd", "--healthcheck"]
ENTRYPOINT ["attnd"]
