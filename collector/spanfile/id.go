package spanfile

import (
	"encoding/hex"
	"strings"

	"github.com/trimtab/trimtab/collector/internal/jsonvalue"
)

// hexID decodes an id of up to 2·len(out) hexadecimal digits, padded on the
// left as both Jaeger and Zipkin allow; what is no id leaves out zero, and a
// span with a zero id is rejected.
func hexID(v jsonvalue.Value, out []byte) {
	text, _ := v.Text()
	if len(text) > 2*len(out) {
		return
	}
	text = strings.Repeat("0", 2*len(out)-len(text)) + text
	decoded, err := hex.DecodeString(text)
	if err == nil {
		copy(out, decoded)
	}
}
