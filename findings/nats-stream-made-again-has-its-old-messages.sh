#!/bin/sh
# A stream that is deleted and made again at once can come back with the messages that it had.
#
# nats-server 2.15.2, nats.go 1.55.0, embedded, file storage. Setting: one client in one goroutine makes
# a key-value bucket, reads a key, writes it, and deletes the bucket, each after the answer to the one before.
# Seen: the server answers the deletion before the files of the stream are gone. In about half of the
# rounds the new bucket has the key of the deleted one; a few times in 10,000 making it fails with
# "error creating store for stream" (500, 10049). With memory storage neither happens. So a deletion that was
# answered does not mean that the data is gone, if the name is used again.
#
# Needs go and the Go module proxy. Ends within a minute after the build.
set -eu
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// rounds makes and deletes a bucket n times, and counts how often it had a key at once, or could not be made.
func rounds(js jetstream.JetStream, n int, storage jetstream.StorageType) (old, failed int) {
	ctx := context.Background()
	for range n {
		kv, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "again", Storage: storage})
		if err != nil {
			failed++
			continue
		}
		if _, err := kv.Get(ctx, "key"); err == nil {
			old++
		}
		if _, err := kv.Put(ctx, "key", []byte("value")); err != nil {
			log.Fatal(err)
		}
		if err := js.DeleteKeyValue(ctx, "again"); err != nil {
			log.Fatal(err)
		}
	}
	return old, failed
}

func main() {
	s, err := server.NewServer(&server.Options{DontListen: true, JetStream: true, StoreDir: os.Args[1]})
	if err != nil {
		log.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		log.Fatal("the server is not ready")
	}
	defer s.Shutdown()
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		log.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		log.Fatal(err)
	}
	const n = 2000
	old, failed := rounds(js, n, jetstream.FileStorage)
	oldInMemory, failedInMemory := rounds(js, n, jetstream.MemoryStorage)
	fmt.Printf("nats-server %s: of %d buckets made again in files %d had the key of the deleted one, %d could not be made; in memory %d and %d\n",
		server.VERSION, n, old, failed, oldInMemory, failedInMemory)
	if old == 0 || oldInMemory+failedInMemory != 0 {
		log.Fatal("nats-stream-made-again-has-its-old-messages: this version does otherwise")
	}
}
GO
go mod init again >/dev/null 2>&1
go get github.com/nats-io/nats-server/v2@v2.15.2 github.com/nats-io/nats.go@v1.55.0 >/dev/null 2>&1
GOFLAGS=-mod=mod go build -o again .
./again "$dir/store"
