package natsbus

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/topic"
)

func stored(t *testing.T, name string) *nats.Msg {
	t.Helper()
	a := &trimtab.Alert{Workload: "shop", Name: name, Fingerprint: "f", Firing: true, Time: time.Unix(1, 0)}
	data, err := codec.Encode(a, trimtab.Origin{Source: "s", Incarnation: 1, Sequence: 1})
	if err != nil {
		t.Fatal(err)
	}
	return &nats.Msg{Subject: "trimtab.alert.shop", Data: data}
}

func metaOf(sequence uint64, at int64) *nats.MsgMetadata {
	return &nats.MsgMetadata{Sequence: nats.SequencePair{Stream: sequence}, Timestamp: time.Unix(at, 0)}
}

func TestAStoredMessageIsDecodedOnceForAllThatGetIt(t *testing.T) {
	var r reads
	k := &kind{Topic: topic.Topic{Kind: trimtab.KindAlert}}
	read := func(m *nats.Msg, meta *nats.MsgMetadata) *trimtab.Alert {
		t.Helper()
		v, o, err := r.read(k, m, meta)
		if err != nil || o.Source != "s" {
			t.Fatalf("%+v, origin %+v, %v", v, o, err)
		}
		return v.(*trimtab.Alert)
	}
	first := read(stored(t, "a"), metaOf(7, 1))
	if again := read(stored(t, "a"), metaOf(7, 1)); again != first {
		t.Error("the second reader got another value than the first")
	}
	if other := read(stored(t, "b"), metaOf(8, 1)); other == first || other.Name != "b" {
		t.Errorf("the next message gives %+v", other)
	}
	if anew := read(stored(t, "c"), metaOf(7, 2)); anew.Name != "c" {
		t.Errorf("the same number in a stream that was made anew gives %+v", anew)
	}
}

func TestAMessageThatCannotBeReadIsUnreadableToAll(t *testing.T) {
	var r reads
	k := &kind{Topic: topic.Topic{Kind: trimtab.KindAlert}}
	for range 2 {
		if v, _, err := r.read(k, &nats.Msg{Subject: "trimtab.alert.shop", Data: []byte("{")}, metaOf(1, 1)); err == nil {
			t.Errorf("%+v", v)
		}
	}
}

func TestWhatIsKeptDecodedIsBounded(t *testing.T) {
	var r reads
	for i := range uint64(1000) {
		r.at(position{sequence: i}, maxReadBytes/100)
	}
	if len(r.known) != 100 || len(r.order) != 100 || r.bytes > maxReadBytes {
		t.Errorf("%d messages, %d in order, %d bytes", len(r.known), len(r.order), r.bytes)
	}
	r.at(position{sequence: 5000}, 10*maxReadBytes)
	if len(r.known) != 1 || r.known[position{sequence: 5000}] == nil {
		t.Errorf("%d messages beside one that is larger than the bound", len(r.known)-1)
	}
}

func TestWhatWasReadLongAgoIsNotKeptDecoded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reads
		for i := range uint64(1000) {
			r.at(position{sequence: i}, 100) // together they are within the bound of bytes
			time.Sleep(time.Second)
		}
		if most := int(keptFor/time.Second) + 1; len(r.known) > most || len(r.order) != len(r.known) || r.bytes != 100*len(r.known) {
			t.Errorf("of messages that came one a second %d are kept, %d in order, %d bytes; want at most %d", len(r.known), len(r.order), r.bytes, most)
		}
	})
}

func TestAnEstimateThatDidNotComeBackForLongIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reads
		for i := range 1000 {
			r.publishes(strconv.Itoa(i), sent{value: &trimtab.Estimate{}, data: make([]byte, 100)})
			time.Sleep(time.Second)
		}
		if most := int(keptFor/time.Second) + 1; len(r.sent) > most || len(r.sentOrder) != len(r.sent) || r.sentBytes != 100*len(r.sent) {
			t.Errorf("of estimates that went out one a second %d are kept, %d in order, %d bytes; want at most %d", len(r.sent), len(r.sentOrder), r.sentBytes, most)
		}
	})
}

func TestAnEstimateThatThisProcessPublishedIsNotDecodedAgain(t *testing.T) {
	var r reads
	k := &kind{Topic: topic.Topic{Kind: trimtab.KindEstimate}}
	e := &trimtab.Estimate{Workload: "shop", Model: "m", Time: time.Unix(1, 0).UTC()}
	origin := trimtab.Origin{Source: "s", Incarnation: 1, Sequence: 1}
	data, err := codec.Encode(e, origin)
	if err != nil {
		t.Fatal(err)
	}
	r.publishes("id", sent{value: e, origin: origin, data: data})
	read := func(sequence uint64, subject, id string, data []byte) (trimtab.Value, error) {
		v, _, err := r.read(k, &nats.Msg{Subject: subject, Data: data, Header: nats.Header{nats.MsgIdHdr: {id}}}, metaOf(sequence, 1))
		return v, err
	}
	if v, err := read(1, "trimtab.estimate.shop", "id", data); err != nil || v != trimtab.Value(e) {
		t.Errorf("%+v, %v: want the very value that was published", v, err)
	}
	other := *e
	other.Model = "another"
	foreign, err := codec.Encode(&other, origin)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := read(2, "trimtab.estimate.shop", "id", foreign); err != nil || v.(*trimtab.Estimate).Model != "another" {
		t.Errorf("%+v, %v: a message with the id of ours and other content is not ours", v, err)
	}
	if v, err := read(3, "trimtab.estimate.other", "id", data); err == nil {
		t.Errorf("%+v was read on the subject of another workload", v)
	}
}

func TestWhatWasSentAndDidNotComeBackIsBounded(t *testing.T) {
	var r reads
	for i := range 1000 {
		r.publishes(string(rune('a'+i)), sent{value: &trimtab.Estimate{}, data: make([]byte, maxReadBytes/100)})
	}
	if len(r.sent) != 100 || len(r.sentOrder) != 100 || r.sentBytes > maxReadBytes {
		t.Errorf("%d values, %d in order, %d bytes", len(r.sent), len(r.sentOrder), r.sentBytes)
	}
	r.publishes("plan", sent{value: &trimtab.Plan{}})
	if _, kept := r.sent["plan"]; kept {
		t.Error("a plan is kept: its publisher goes on with it")
	}
}
