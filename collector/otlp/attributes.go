package otlp

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/jsonvalue"
	"github.com/trimtab/trimtab/collector/internal/wire"
)

// hasToTell reports whether the attributes of a span may matter: they name its peer, or say that
// it waits for messages, or, in a root span, describe the sampler. Those of other spans are
// skipped, for speed.
func hasToTell(kind trimtab.SpanKind, root bool) bool { return root || kind >= trimtab.SpanClient }

// scanAttributes reads the attributes among the fields of a span.
func scanAttributes(fields []byte, s *trimtab.Span, peer *collector.Peer) error {
	return wire.Fields(fields, func(tag uint64, value []byte, _ uint64) error {
		if tag != spanAttribute || !mayMatter(value) {
			return nil
		}
		key, v, err := scanKeyValue(value)
		switch v.tag {
		case anyText:
			applyText(s, peer, key, v.text)
		case anyBool:
			peer.ObserveTruth(key, v.number != 0)
		case anyInt:
			peer.ObserveNumber(key, int64(v.number))
		case anyDouble:
			peer.ObserveDecimal(key, math.Float64frombits(binary.LittleEndian.Uint64(v.text)))
		}
		return err
	})
}

// applyText applies an attribute with a text value. Only CLIENT, PRODUCER and CONSUMER kinds can
// wait for messages.
func applyText(s *trimtab.Span, peer *collector.Peer, key, text []byte) {
	if hasToTell(s.Kind, false) {
		collector.ApplyAttribute(s, peer, key, text)
	} else {
		peer.Observe(key, text)
	}
}

// mayMatter reports whether an attribute must be decoded: by its key, which all libraries write
// first.
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
		case literal && ok:
			peer.ObserveLiteral([]byte(key), text)
		case literal:
			if f, err := strconv.ParseFloat(text, 64); err == nil {
				peer.ObserveDecimal([]byte(key), f)
			}
		case ok:
			applyText(s, peer, []byte(key), []byte(text))
		}
	}
}
