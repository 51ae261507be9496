package natsbus

import (
	"errors"
	"testing"
	"time"

	"github.com/trimtab/trimtab/bus"
)

func TestNothingWaitsForTheStoreOnceTheTimeOfTheEndIsOver(t *testing.T) {
	b := open(t, Config{Dir: t.TempDir()})
	bucket, err := b.Bucket(t.Context(), "snapshots")
	if err != nil {
		t.Fatal(err)
	}
	b.EndBy(time.Now().Add(time.Hour))
	if _, err := bucket.Put(t.Context(), "a", []byte("1")); err != nil {
		t.Errorf("put in time: %v", err)
	}
	if err := b.Publish(t.Context(), alertOf("w", "a")); err != nil {
		t.Errorf("publish in time: %v", err)
	}
	b.EndBy(time.Now())
	if _, err := bucket.Put(t.Context(), "a", []byte("2")); !errors.Is(err, bus.ErrEnding) {
		t.Errorf("put too late: %v", err)
	}
	if err := b.Publish(t.Context(), alertOf("w", "b")); !errors.Is(err, bus.ErrEnding) {
		t.Errorf("publish too late: %v", err)
	}
	if _, err := b.Bucket(t.Context(), "others"); !errors.Is(err, bus.ErrEnding) {
		t.Errorf("bucket too late: %v", err)
	}
}
