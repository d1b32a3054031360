# One image, one version, four commands: sweephand api | worker | dispatcher | migrate.

# The locked packages: a layer that stays the same for as long as the lock does.
FROM python:3.13-slim AS packages
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
COPY requirements/runtime.txt .
# pip itself is left out: what is there was locked, and nothing is added at run time. Everything is compiled here, without the
# sources' times, and all files are given one time: the same lock makes the same layer.
RUN python -m venv /opt/sweephand \
    && /opt/sweephand/bin/pip install --quiet --no-compile --require-hashes --only-binary=:all: --requirement runtime.txt \
    && /opt/sweephand/bin/pip uninstall --quiet --yes pip \
    && echo /opt/app > "$(echo /opt/sweephand/lib/python3.*/site-packages)/app.pth" \
    && python -m compileall -q -f --invalidation-mode unchecked-hash /opt/sweephand/lib \
    && find /opt -exec touch --no-dereference --date=@0 {} + \
    && mkdir /layer && mv /opt /layer

# sweephand and storefront: the small layer on top.
FROM python:3.13-slim AS app
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
COPY requirements/build.txt requirements/
RUN python -m venv tools && tools/bin/pip install --quiet --require-hashes --only-binary=:all: --requirement requirements/build.txt
COPY pyproject.toml LICENSE README.m[d] ./
COPY services/sweephand services/sweephand
RUN tools/bin/python -m hatchling build -t wheel -d dist \
    && tools/bin/pip install --quiet --no-compile --no-deps --target /opt/app dist/*.whl \
    && sed -i '1s|.*|#!/opt/sweephand/bin/python|' /opt/app/bin/sweephand
COPY services/storefront /opt/app/storefront
RUN python -m compileall -q -f --invalidation-mode unchecked-hash /opt/app \
    && find /opt -exec touch --no-dereference --date=@0 {} + \
    && mkdir /layer && mv /opt /layer

FROM python:3.13-slim AS runtime
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title=sweephand \
      org.opencontainers.image.description="Periodic work without cron, on PostgreSQL and Kubernetes, with the storefront example" \
      org.opencontainers.image.licenses=Apache-2.0 \
      org.opencontainers.image.version=$VERSION \
      org.opencontainers.image.revision=$REVISION
ENV PATH=/opt/app/bin:/opt/sweephand/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    SWEEPHAND_APP=storefront.app:create_app \
    SWEEPHAND_REVISION=$REVISION
COPY --from=packages /layer /
COPY --from=app /layer /
# A number, so that Kubernetes can see that it is not root.
USER 10001:10001
EXPOSE 8000 9090
ENTRYPOINT ["sweephand"]
CMD ["--help"]

# For `skaffold dev`: the sources themselves, writable, and restarted when one of them changes.
FROM runtime AS dev
USER 0:0
COPY --chown=10001:10001 services /src/services
COPY --chown=10001:10001 k8s/dev/sweephand /src/bin/sweephand
ENV PATH=/src/bin:$PATH PYTHONPATH=/src/services
USER 10001:10001

# What `docker build .` makes.
FROM runtime
