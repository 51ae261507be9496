package view

import (
	"encoding/json"
	"strings"
	"testing"
)

// Programs read the API: its keys stay where they are, whatever parts the type has.
func TestAllPartsOfAnExplanationAreOneObject(t *testing.T) {
	b, err := json.Marshal(Explanation{Workload: "shop", Learnt: Learnt{Reports: 3}})
	want := `{"workload":"shop","decision":"","epoch":0,"plan":"","inputs":null,"model":"","bounds":null,"binding":`
	if err != nil || !strings.HasPrefix(string(b), want) || !strings.HasSuffix(string(b), `"alternatives":null,"mode":"","code":"","state":"","kind":"","reports":3}`) {
		t.Errorf("%s, %v", b, err)
	}
}
