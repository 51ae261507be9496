package kubernetes

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/kube"
)

// Journal is an [actuator.Journal] in a ConfigMap, for an actuator that the cluster may start on
// another node. The server compares the version that this process last read or wrote with each
// write: once another process has written, every Append of this one fails, so it has no effect
// any more. That is the fence between two actuators.
type Journal struct {
	client *kube.Client
	at     kube.ConfigMap
	state  map[string][]byte
	// holder identifies this process in the ConfigMap, so that the first write always changes it:
	// the server gives no new version to a write without a change.
	holder string
	// taken is set once this process has written it.
	taken bool
	// lost is set once another process has the journal.
	lost    error
	damaged int
}

// maxJournal is the largest compressed size, in bytes: an object may have 1 MiB.
const maxJournal = 900 << 10

// appendFor is the time limit for one write of the journal.
const appendFor = 15 * time.Second

// The keys of the ConfigMap.
const (
	dataKey   = "journal"
	holderKey = "holder"
)

// JournalName returns the name of a pool's ConfigMap.
func JournalName(pool string) string { return "trimtab-journal-" + strings.ToLower(pool) }

// OpenJournal reads the journal of a pool in a namespace, or creates it, and takes it over: the
// former owner can no longer write it.
func OpenJournal(ctx context.Context, c *kube.Client, namespace, pool string) (*Journal, error) {
	j := &Journal{client: c, state: map[string][]byte{}, holder: rand.Text()}
	at, err := c.ConfigMap(ctx, namespace, JournalName(pool))
	switch {
	case errors.Is(err, os.ErrNotExist):
		if at, err = c.CreateConfigMap(ctx, namespace, JournalName(pool)); err != nil {
			return nil, fmt.Errorf("open journal: %w", err)
		}
	case err != nil:
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j.at = *at
	if b := at.BinaryData[dataKey]; len(b) > 0 {
		if j.state, err = unpack(b); err != nil {
			j.state, j.damaged = map[string][]byte{}, 1
		}
	}
	if err := j.store(ctx, j.state); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return j, nil
}

// Get returns the value of a key.
func (j *Journal) Get(key string) ([]byte, bool) {
	v, ok := j.state[key]
	return v, ok
}

// Keys lists the keys that start with prefix, in order.
func (j *Journal) Keys(prefix string) []string {
	var out []string
	for k := range j.state {
		if strings.HasPrefix(k, prefix) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// Append stores the changes with one PUT.
func (j *Journal) Append(entries ...hostfs.Entry) error {
	if j.lost != nil {
		return j.lost
	}
	next := maps.Clone(j.state)
	for _, e := range entries {
		if e.Value == nil {
			delete(next, e.Key)
		} else {
			next[e.Key] = slices.Clone(e.Value)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), appendFor)
	defer cancel()
	if err := j.store(ctx, next); err != nil {
		return fmt.Errorf("append to journal: %w", err)
	}
	j.state = next
	return nil
}

// store writes the whole journal. The server refuses it if the version is not the one this process
// knows.
func (j *Journal) store(ctx context.Context, state map[string][]byte) error {
	b, err := pack(state)
	if err != nil {
		return err
	}
	data := map[string][]byte{dataKey: b, holderKey: []byte(j.holder)}
	after, err := j.client.UpdateConfigMap(ctx, &j.at, data)
	if errors.Is(err, trimtab.ErrStale) {
		// The conflict may come from an earlier write of this process that the server carried out
		// without an answer.
		now, unread := j.client.ConfigMap(ctx, j.at.Namespace, j.at.Name)
		if unread != nil {
			return unread
		}
		if j.taken && string(now.BinaryData[holderKey]) == j.holder && now.UID == j.at.UID {
			after, err = j.client.UpdateConfigMap(ctx, now, data)
		}
	}
	if errors.Is(err, trimtab.ErrStale) {
		j.lost = fmt.Errorf("another trimtab has taken over the journal %s/%s: stop one of the two: %w", j.at.Namespace, j.at.Name, err)
		return j.lost
	}
	if err != nil {
		return err
	}
	j.at, j.taken = *after, true
	return nil
}

// Damaged returns 1 where the journal could not be read.
func (j *Journal) Damaged() int { return j.damaged }

// Close does nothing: the ConfigMap stays.
func (j *Journal) Close() error { return nil }

func pack(state map[string][]byte) ([]byte, error) {
	b, err := json.Marshal(state)
	if err != nil {
		return nil, fmt.Errorf("encode journal: %w", err)
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err = z.Write(b); err == nil {
		err = z.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("compress journal: %w", err)
	}
	if out.Len() > maxJournal {
		return nil, fmt.Errorf("journal of %d bytes, at most %d fit: split the pool: %w", out.Len(), maxJournal, trimtab.ErrRefused)
	}
	return out.Bytes(), nil
}

// maxUnpacked bounds the decompressed size of a ConfigMap that another program may have written.
const maxUnpacked = 32 << 20

func unpack(b []byte) (map[string][]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	state := map[string][]byte{}
	if err := json.NewDecoder(io.LimitReader(z, maxUnpacked)).Decode(&state); err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	return state, nil
}
