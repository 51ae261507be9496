package demo

import (
	"net"
	"testing"
)

func TestAnAddressOfTheDemoIsGivenOnceUntilItEnds(t *testing.T) {
	// Two demos at a time. Of so many ports that the kernel chooses, some are
	// the same.
	var a, b addresses
	given := map[string]bool{}
	for range 500 {
		for _, from := range []*addresses{&a, &b} {
			address, err := from.free()
			if err != nil {
				t.Fatal(err)
			}
			if given[address] {
				t.Fatalf("%s is given twice", address)
			}
			given[address] = true
			l, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			l.Close()
		}
	}
	for _, from := range []*addresses{&a, &b} {
		if err := from.close(); err != nil {
			t.Error(err)
		}
	}
	// Other programs may have taken a few of them since.
	taken := 0
	for address := range given {
		mark, err := net.ListenPacket("udp", address)
		if err != nil {
			taken++
			continue
		}
		mark.Close()
	}
	if taken > len(given)/10 {
		t.Errorf("after the end %d of %d are taken", taken, len(given))
	}
}
