-- The private key of a trunk's TLS client certificate, sealed; the certificate is a setting.
alter table trunks add column tls_key text;
