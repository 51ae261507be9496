package otlp

import (
	"bytes"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/jsonvalue"
	"github.com/trimtab/trimtab/collector/internal/wire"
)

// hasToTell reports whether the attributes of a span of that kind may say something: whom
// it calls, or that it waits for messages. Those of other spans are passed over, for speed.
func hasToTell(kind trimtab.SpanKind) bool { return kind >= trimtab.SpanClient }

// scanAttributes reads the attributes among the fields of a span.
func scanAttributes(fields []byte, s *trimtab.Span, peer *collector.Peer) error {
	return wire.Fields(fields, func(tag uint64, value []byte, _ uint64) error {
		if tag != spanAttribute || !mayMatter(value) {
			return nil
		}
		key, v, err := scanKeyValue(value)
		switch v.tag {
		case anyText:
			collector.ApplyAttribute(s, peer, key, v.text)
		case anyBool:
			peer.TakeTruth(key, v.number != 0)
		case anyInt:
			peer.TakeNumber(key, int64(v.number))
		}
		return err
	})
}

// mayMatter reports whether an attribute has to be unpacked: by its key, which stands first
// as all libraries write it.
func mayMatter(b []byte) bool {
	if len(b) < 2 || b[0] != byte(keyValueKey) || int(b[1]) > len(b)-2 {
		return true
	}
	key := b[2 : 2+b[1]]
	return collector.NamesPeer(key) || bytes.HasPrefix(key, []byte("messaging.operation"))
}

// jsonAttributes reads the attributes of a span.
func jsonAttributes(list jsonvalue.Value, s *trimtab.Span, peer *collector.Peer) {
	for kv := range list.Elements() {
		key, _ := kv.Member("key").Text()
		switch text, ok, literal := jsonAny(kv.Member("value")); {
		case literal:
			peer.TakeLiteral([]byte(key), text)
		case ok:
			collector.ApplyAttribute(s, peer, []byte(key), []byte(text))
		}
	}
}
