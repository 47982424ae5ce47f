# syntax=docker/dockerfile:1
# The image has the one static binary and nothing else: no shell, no package manager. It runs as uid 65532 with a
# read-only root filesystem (the product writes no file). Both base images can be replaced: docker build --build-arg BASE=...
ARG GO=golang:1.26
ARG BASE=gcr.io/distroless/static:nonroot

FROM --platform=$BUILDPLATFORM ${GO} AS build
ARG TARGETOS TARGETARCH
ENV CGO_ENABLED=0 GOCACHE=/cache/build GOMODCACHE=/cache/modules
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/cache go mod download
COPY . .
RUN --mount=type=cache,target=/cache \
    GOOS=${TARGETOS} GOARCH=${TARGETARCH} go build -trimpath -ldflags='-s -w' -o /jit-scheduler ./cmd/jit-scheduler

FROM ${BASE}
COPY --from=build /jit-scheduler /jit-scheduler
COPY LICENSE NOTICE /licenses/
USER 65532:65532
EXPOSE 10259
ENTRYPOINT ["/jit-scheduler"]
