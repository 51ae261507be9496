package trimtab

import (
	"math"
	"testing"
)

func TestPeopleReadBytesInBinaryUnitsAndOthersAsNumbers(t *testing.T) {
	for _, c := range []struct {
		resource string
		amount   Amount
		want     string
	}{
		{Memory, Units(0), "0B"}, {Memory, Units(1023), "1023B"}, {Memory, Units(3 << 29), "1.5GiB"}, {Memory, Units(5 << 50), "5120TiB"},
		{Memory, Unlimited(), "unlimited"}, {CPU, Units(0.1 + 0.2), "0.3"}, {Workers, Units(2048), "2048"}, {"disk", Units(4096), "4096"},
	} {
		if got := ResourceOf(c.resource).Text(c.amount); got != c.want || AmountOf(c.resource, c.amount) != c.want {
			t.Errorf("%v of %s: %q, want %q", c.amount, c.resource, got, c.want)
		}
	}
}

func TestAResourceThatIsNotKnownIsNeededPerRequestAndCountedInItself(t *testing.T) {
	if r := ResourceOf("disk"); r != (Resource{Name: "disk", Unit: "disk"}) {
		t.Errorf("%+v", r)
	}
	if r := ResourceOf(""); r.Unit == "" {
		t.Error("no word for the amounts of no resource")
	}
	for _, name := range []string{CPU, Workers, Memory, "llc", Cores, Weight, Running, Alive} {
		if r := ResourceOf(name); r.Name != name || r.Unit == "" || !(r.Step > 0) || math.IsInf(r.Step, 0) {
			t.Errorf("%+v", r)
		}
	}
}
