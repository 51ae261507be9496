package otlp

import (
	"bytes"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/jsonvalue"
	"github.com/trimtab/trimtab/collector/internal/wire"
)

// mayReceive reports whether a span may be one that waits for messages, so that its
// attributes have to be read. Those of other spans are passed over, for speed.
func mayReceive(kind trimtab.SpanKind, root bool) bool {
	return kind == trimtab.SpanConsumer || kind == trimtab.SpanClient && root
}

// scanAttributes reads the attributes among the fields of a span.
func scanAttributes(fields []byte, s *trimtab.Span) error {
	return wire.Fields(fields, func(tag uint64, value []byte, _ uint64) error {
		if tag != spanAttribute || !bytes.Contains(value, []byte("messaging.operation")) {
			return nil
		}
		a, ok, err := scanAttr(value)
		if ok {
			collector.ApplyAttribute(s, a.Key, a.Value)
		}
		return err
	})
}

// jsonAttributes reads the attributes of a span.
func jsonAttributes(list jsonvalue.Value, s *trimtab.Span) {
	for kv := range list.Elements() {
		key, _ := kv.Member("key").Text()
		if text, ok := jsonAny(kv.Member("value")); ok {
			collector.ApplyAttribute(s, key, text)
		}
	}
}
