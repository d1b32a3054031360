# One image, one version, four commands: sweephand api | worker | dispatcher | migrate.

FROM python:3.13-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
RUN python -m venv /opt/sweephand
# The locked packages first: this layer stays as long as the lock does.
COPY requirements/build.txt requirements/runtime.txt requirements/
RUN /opt/sweephand/bin/pip install --quiet --no-compile --require-hashes --only-binary=:all: --requirement requirements/runtime.txt \
    && python -m venv tools && tools/bin/pip install --quiet --require-hashes --only-binary=:all: --requirement requirements/build.txt
COPY pyproject.toml LICENSE README.m[d] ./
COPY services/sweephand services/sweephand
# pip itself is left out of the image: what is there was locked, and nothing is added at run time.
RUN tools/bin/python -m hatchling build -t wheel -d dist \
    && /opt/sweephand/bin/pip install --quiet --no-compile --no-deps dist/*.whl \
    && /opt/sweephand/bin/pip uninstall --quiet --yes pip
# Compiled here, without the sources' times, and all files of one time: the same sources give the same layers.
COPY services/storefront /opt/storefront/storefront
RUN python -m compileall -q --invalidation-mode unchecked-hash /opt/sweephand/lib /opt/storefront \
    && find /opt/sweephand /opt/storefront -exec touch --no-dereference --date=@0 {} +

FROM python:3.13-slim AS runtime
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title=sweephand \
      org.opencontainers.image.description="Periodic work without cron, on PostgreSQL and Kubernetes, with the storefront example" \
      org.opencontainers.image.licenses=Apache-2.0 \
      org.opencontainers.image.version=$VERSION \
      org.opencontainers.image.revision=$REVISION
ENV PATH=/opt/sweephand/bin:$PATH \
    PYTHONPATH=/opt/storefront \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    SWEEPHAND_APP=storefront.app:create_app \
    SWEEPHAND_REVISION=$REVISION
COPY --from=build /opt/sweephand /opt/sweephand
COPY --from=build /opt/storefront /opt/storefront
# A number, so that Kubernetes can see that it is not root.
USER 10001:10001
EXPOSE 8000 9090
ENTRYPOINT ["sweephand"]
CMD ["--help"]

# For `skaffold dev`: the sources themselves, writable, and restarted when one of them changes.
FROM runtime AS dev
USER 0:0
COPY --from=build /build/pyproject.toml /src/pyproject.toml
COPY --chown=10001:10001 services /src/services
COPY --chown=10001:10001 k8s/dev/sweephand /src/bin/sweephand
ENV PATH=/src/bin:$PATH PYTHONPATH=/src/services
USER 10001:10001

# What `docker build .` makes.
FROM runtime
