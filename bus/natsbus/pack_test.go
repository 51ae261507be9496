package natsbus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go"
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/topic"
)

// longPlan is a plan of as many workloads.
func longPlan(workloads int) *trimtab.Plan {
	p := &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Last: true, Time: time.Unix(1, 0).UTC(), Objective: "njc",
		Capacity: 4, Resource: "cpu", Lease: 10, Cause: trimtab.Cause{Kind: codes.CauseTick}, Unmoved: map[string]trimtab.Held{}}
	for i := range workloads {
		p.Unmoved[fmt.Sprintf("w%d", i)] = trimtab.Held{Code: codes.StayIdle, Text: "everybody has what it needs"}
	}
	return p
}

// newestPlan returns the newest message of the stream of plans, as it is stored.
func newestPlan(t *testing.T, b testBus) (nats.Header, []byte) {
	t.Helper()
	s, err := b.js.Stream(t.Context(), "PLANS")
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.GetMsg(t.Context(), s.CachedInfo().State.LastSeq)
	if err != nil {
		t.Fatal(err)
	}
	return m.Header, m.Data
}

func TestWhatNobodyElseReadsIsStoredCompressedAndReadByALaterOneThatListens(t *testing.T) {
	dir, p := t.TempDir(), longPlan(100)
	plain, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	alone := open(t, Config{Dir: dir})
	if err := alone.Publish(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if h, data := newestPlan(t, alone); h.Get(headerEncoding) != encodingS2 || 3*len(data) > len(plain) {
		t.Errorf("a plan of %d bytes is stored in %d, encoding %q", len(plain), len(data), h.Get(headerEncoding))
	}
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}
	listens := open(t, Config{Dir: dir, Listen: "127.0.0.1:0"})
	got := make(chan trimtab.Value, 2)
	stop, err := listens.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindPlan, History: true, Handle: func(_ context.Context, d bus.Delivery) error {
		got <- d.Value
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := listens.Publish(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		again, err := json.Marshal(<-got)
		if err != nil || !bytes.Equal(again, plain) {
			t.Errorf("got %s, %v", again, err)
		}
	}
	if h, data := newestPlan(t, listens); h.Get(headerEncoding) != "" || !json.Valid(data) {
		t.Errorf("what others can read is stored as %q", h.Get(headerEncoding))
	}
}

func TestACompressedMessageThatCannotBeReadIsInvalid(t *testing.T) {
	k := &kind{Topic: topic.Topic{Kind: trimtab.KindPlan}}
	for name, m := range map[string]struct {
		encoding string
		data     []byte
	}{
		"damaged":          {encodingS2, []byte("\x20nonsense")},
		"too large":        {encodingS2, s2.Encode(nil, make([]byte, maxUnpacked+1))},
		"unknown encoding": {"br", []byte("{}")},
	} {
		h := nats.Header{headerEncoding: {m.encoding}}
		if _, _, err := new(reads).read(k, &nats.Msg{Subject: "trimtab.plan.p", Header: h, Data: m.data}, metaOf(1, int64(len(name)))); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(true, []byte("{}"))
	f.Add(true, s2.Encode(nil, make([]byte, 1<<16)))
	f.Fuzz(func(t *testing.T, compressed bool, data []byte) {
		h := nats.Header{}
		if compressed {
			h.Set(headerEncoding, encodingS2)
		}
		n, bad := unpackedLen(h, data)
		out, err := unpack(h, data)
		if bad != nil && err == nil || err == nil && len(out) != n || compressed && n > maxUnpacked {
			t.Errorf("%d bytes of %d, %v, %v", len(out), n, bad, err)
		}
		m := &nats.Msg{Header: nats.Header{}, Data: data}
		pack(m)
		if again, err := unpack(m.Header, m.Data); err != nil || !bytes.Equal(again, data) {
			t.Errorf("%q comes back as %q, %v", data, again, err)
		}
	})
}

func TestALockTakesNoMoreRoomHoweverOftenItIsRenewed(t *testing.T) {
	dir := t.TempDir()
	b := open(t, Config{Dir: dir})
	k, err := b.Bucket(t.Context(), "leaders")
	if err != nil {
		t.Fatal(err)
	}
	record, revision := bytes.Repeat([]byte("r"), 300), uint64(0)
	const renewals = 500
	for range renewals {
		if revision, err = k.Update(t.Context(), "pool", record, revision); err != nil {
			t.Fatal(err)
		}
	}
	var stored int64
	blocks, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "KV_leaders", "msgs", "*.blk"))
	if err != nil || len(blocks) == 0 {
		t.Fatalf("%d blocks, %v", len(blocks), err)
	}
	for _, name := range blocks {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		stored += info.Size()
	}
	if stored > lockBytes || stored >= renewals*int64(len(record)) {
		t.Errorf("%d renewals of %d bytes take %d, bound %d", renewals, len(record), stored, lockBytes)
	}
}
