"""The reference application: a shop whose jobs publish products and confirm orders. Copy from it.

Read it from the inside out; each layer imports only those before it:

    domain/      what a product and an order are. Standard library only.
    ports.py     what the use cases need from outside, as Protocols; a docstring there is a contract with tests.
    use_cases/   what the shop can do, one module for each thing. Standard library only.
    adapters/    ways in (http/, jobs.py) that call use cases, ways out (postgres/, warehouse/, mail/) that fulfil ports.
    app.py       the composition root: the only place that builds adapters and joins them.

Run it with `sweephand dev --app storefront.app:create_app`.
"""
