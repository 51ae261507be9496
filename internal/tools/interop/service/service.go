// Package service is the part of a sender that knows nothing of traces: a server
// each of whose requests asks a dependency and waits for it, and a client that
// polls once a second, as those of queues do.
package service

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// Run serves at PORT until the process ends.
func Run(client *http.Client, traced func(http.Handler) http.Handler) error {
	get := func(ctx context.Context, path string) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, os.Getenv("DEPENDENCY")+path, nil)
		if err != nil {
			return fmt.Errorf("ask for %s: %w", path, err)
		}
		answer, err := client.Do(r)
		if err != nil {
			return fmt.Errorf("ask for %s: %w", path, err)
		}
		defer answer.Body.Close()
		if _, err = io.Copy(io.Discard, answer.Body); err != nil {
			return fmt.Errorf("read the answer for %s: %w", path, err)
		}
		return nil
	}
	go func() {
		for range time.Tick(time.Second) {
			_ = get(context.Background(), "/poll") // the next poll follows in a second
		}
	}()
	work := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := get(r.Context(), "/work"+r.URL.Path); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	})
	if err := http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), traced(work)); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
