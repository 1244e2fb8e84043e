#!/bin/sh
# Owns the secrets of docker-compose.yml: makes those that are not there yet, in deploy/compose/secrets. Run it again after a new one was added.
# The files are readable for everybody who may enter their folder, because users in containers have other numbers; the folder is for you alone.
set -eu
cd "$(dirname "$0")"
umask 022
mkdir -p secrets
chmod 700 secrets

# make <file> <content>
make() {
  if [ ! -s "secrets/$1" ]; then
    printf '%s' "$2" >"secrets/$1"
  fi
}
random() {
  head -c "$1" /dev/urandom | od -An -v -tx1 | tr -d ' \n'
}

make app_secret "$(random 32)"
make database_password "$(random 24)"
make database_url "postgres://parley:$(cat secrets/database_password)@postgres:5432/parley"
make recordings_access_key_id "GK$(random 12)"
make recordings_secret_access_key "$(random 32)"
make metrics_token "$(random 24)"
make turn_secret "$(random 32)"
make drachtio_secret "$(random 32)"
make drachtio_url "tcp://:$(cat secrets/drachtio_secret)@127.0.0.1:9022"
make storage_keys "{\"identities\":[{\"name\":\"parley\",\"credentials\":[{\"accessKey\":\"$(cat secrets/recordings_access_key_id)\",\"secretKey\":\"$(cat secrets/recordings_secret_access_key)\"}],\"actions\":[\"Read:recordings\",\"Write:recordings\",\"List:recordings\"]}]}"
ls secrets
