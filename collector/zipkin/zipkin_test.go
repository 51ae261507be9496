package zipkin

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/spantest"
)

type scanner func([]byte, *collector.ResourceCache, *collector.Packer) error

func scan(with scanner, b []byte) (spans []spantest.Span, rejected uint64, err error) {
	p := collector.NewPacker(1)
	if err := with(b, &collector.ResourceCache{}, p); err != nil {
		return nil, 0, err
	}
	return spantest.Unpack(p.Frames()), p.Rejected(), nil
}

// message encodes fields of zipkin.proto: numbers as varints (6: fixed64), texts
// and bytes as such.
func message(fields ...any) (b []byte) {
	for i := 0; i+1 < len(fields); i += 2 {
		number := protowire.Number(fields[i].(int))
		switch v := fields[i+1].(type) {
		case int:
			if number == 6 {
				b = protowire.AppendFixed64(protowire.AppendTag(b, number, protowire.Fixed64Type), uint64(v))
			} else {
				b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), uint64(v))
			}
		case string:
			b = protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), v)
		case []byte:
			b = protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), v)
		}
	}
	return b
}

func exampleList() []byte {
	id := []byte{0, 0, 0, 0, 0, 0, 0, 2}
	return message(
		1, message(1, []byte("0123456789abcdef"), 3, id, 4, 1, 5, "get", 6, 1502787600000000, 7, 7000, 8, message(1, "front", 2, []byte{10, 0, 0, 1}), 11, message(1, "w3c.tracestate", 2, "ot=th:c"), 11, message(1, "http.path", 2, "/")),
		1, message(1, []byte("0123456789abcdef"), 3, id, 6, 1502787600001000, 7, 5000, 8, message(1, "back"), 11, message(1, "error", 2, ""), 13, 1),
		1, message(1, []byte("89abcdef"), 2, id, 3, []byte{0, 0, 0, 0, 0, 0, 0, 3}, 4, 9, 8, message(1, "back")),
		1, message(1, []byte("short"), 3, id),
		1, message(1, []byte("89abcdef"), 3, []byte{1}),
		1, message(1, []byte("89abcdef"), 3, id, 2, []byte{1}))
}

func TestProtobufIsReadLikeJSON(t *testing.T) {
	const trace = "30313233343536373839616263646566"
	fromJSON, rejectedJSON, err := scan(ScanJSON, []byte(`[
	 {"traceId":"`+trace+`","id":"2","kind":"CLIENT","name":"get","timestamp":1502787600000000,"duration":7000,"localEndpoint":{"serviceName":"front"},"tags":{"w3c.tracestate":"ot=th:c","http.path":"/"}},
	 [{"traceId":"`+trace+`","id":"2","timestamp":1502787600001000,"duration":5000,"localEndpoint":{"serviceName":"back"},"tags":{"error":""},"shared":true}],
	 {"traceId":"`+trace[16:]+`","id":"3","parentId":"2","kind":"LATER","localEndpoint":{"serviceName":"back"},"annotations":[{"timestamp":1,"value":"x"}]},
	 {"traceId":"`+trace+trace+`","id":"2"},{"traceId":"1","id":null},{"traceId":"1","id":"2","parentId":"-"}]`))
	if err != nil {
		t.Fatal(err)
	}
	fromProto, rejectedProto, err := scan(ScanProto, exampleList())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(fromJSON, fromProto); d != "" || rejectedJSON != 3 || rejectedProto != 3 {
		t.Errorf("%d and %d rejected: %s", rejectedJSON, rejectedProto, d)
	}
	if len(fromJSON) != 3 || fromJSON[0].Adjusted != 4 || fromJSON[1].Kind != trimtab.SpanServer || fromJSON[1].Flags != trimtab.FlagError || fromJSON[2].Start != 0 {
		t.Errorf("%+v", fromJSON)
	}
}

func TestACallInProtobufNamesItsPeerByTheRemoteEndpoint(t *testing.T) {
	for name, c := range map[string]struct {
		kind   int
		remote []byte
		want   string
	}{
		"a service":             {1, message(1, "orders-db", 2, []byte{10, 0, 0, 9}, 4, 5432), "orders-db"},
		"an address alone":      {1, message(2, []byte{10, 0, 0, 9}, 4, 5432), "10.0.0.9:5432"},
		"an IPv6 address":       {3, message(3, []byte("0123456789abcdef"), 4, 5432), "[3031:3233:3435:3637:3839:6162:6364:6566]:5432"},
		"an address of 3 bytes": {1, message(2, []byte{10, 0, 9}), ""},
		"its caller":            {2, message(1, "front", 2, []byte{10, 0, 0, 1}), ""},
	} {
		list := message(1, message(1, []byte("0123456789abcdef"), 3, []byte("01234567"), 4, c.kind, 6, 1502787600000000, 7, 7000, 8, message(1, "shop"), 9, c.remote))
		if spans, _, err := scan(ScanProto, list); err != nil || len(spans) != 1 || spans[0].Callee != c.want {
			t.Errorf("%s: %v, %+v, want the peer %q", name, err, spans, c.want)
		}
	}
}

func TestAZeroIDIsRejected(t *testing.T) {
	if spans, rejected, err := scan(ScanJSON, []byte(`[{"traceId":"0","id":"1"},{"traceId":"1","id":"0"},{"traceId":"1","id":""}]`)); err != nil || rejected != 3 || len(spans) != 0 {
		t.Error(spans, rejected, err)
	}
}

func fuzz(f *testing.F, with scanner) {
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, _, err := scan(with, b); err != nil && !errors.Is(err, trimtab.ErrInvalid) {
			t.Fatal(err)
		}
	})
}

func FuzzScanJSON(f *testing.F) {
	f.Add([]byte(`[{"traceId":"1","parentId":"a","id":"b","kind":"SERVER","shared":true,"timestamp":3.5,"duration":5e3,"localEndpoint":{"serviceName":"back"},"tags":{"error":"x","w3c.tracestate":"ot=th:8"}},[{"traceId":"1","id":"b"}]]`))
	f.Add([]byte(`[{"traceId":"1","id":"2","annotations":[{"endpoint":{}}],"binaryAnnotations":[]}]`))
	fuzz(f, ScanJSON)
}

func FuzzScanProto(f *testing.F) {
	f.Add(exampleList())
	fuzz(f, ScanProto)
}
