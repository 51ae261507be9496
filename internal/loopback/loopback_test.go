package loopback

import (
	"net"
	"testing"
)

func TestAnAddressIsGivenOnceAndCanBeListenedOnAgainAndAgain(t *testing.T) {
	given := map[string]bool{}
	for range 200 {
		address := Address(t)
		if given[address] {
			t.Fatalf("%s is given twice", address)
		}
		given[address] = true
		for range 3 {
			l, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			l.Close()
		}
	}
}

func TestAnAddressIsFreeAgainAfterTheTest(t *testing.T) {
	var address string
	t.Run("inner", func(t *testing.T) { address = Address(t) })
	mark, err := net.ListenPacket("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	mark.Close()
}
