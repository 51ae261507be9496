package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
)

// childWord is the first argument of this program when it is the Go service of its own bench.
const childWord = "child"

// cache has one value for each user, dropped some time after it was made.
type cache struct {
	bytes int
	kept  time.Duration

	mu      sync.Mutex
	entries map[string]entry
}

type entry struct {
	value []byte
	until time.Time
}

// child serves a cache until it is told to end. Its arguments are an address, the bytes of a value and
// the milliseconds for which it is kept.
func child(args []string) error {
	if len(args) != 3 {
		return trimtab.Invalidf("child: want an address, bytes and milliseconds")
	}
	size, errSize := strconv.Atoi(args[1])
	kept, errKept := strconv.Atoi(args[2])
	if err := errors.Join(errSize, errKept); err != nil || size < 1 || kept < 1 {
		return trimtab.Invalidf("child: bytes and milliseconds %.80q", args[1:])
	}
	c := &cache{bytes: size, kept: time.Duration(kept) * time.Millisecond, entries: map[string]entry{}}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s := &http.Server{Addr: args[0], Handler: c, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	go func() {
		for range time.Tick(time.Second) {
			c.drop(time.Now())
		}
	}()
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

func (c *cache) drop(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for user, e := range c.entries {
		if e.until.Before(now) {
			delete(c.entries, user)
		}
	}
}

func (c *cache) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user := r.FormValue("user")
	c.mu.Lock()
	e, ok := c.entries[user]
	if !ok {
		e = entry{bytes.Repeat([]byte{byte(len(user))}, c.bytes), time.Now().Add(c.kept)}
		c.entries[user] = e
	}
	c.mu.Unlock()
	fmt.Fprintln(w, e.value[c.bytes/2])
}
