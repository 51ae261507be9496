package rig

import (
	"errors"
	"strings"
	"testing"
)

func TestAnErrorOfPostgresIsFoundAndReadToTheEnd(t *testing.T) {
	good := "D\x00\x00\x00\x05x" + "Z\x00\x00\x00\x05I"
	if err := untilReady(strings.NewReader(good)); err != nil {
		t.Error(err)
	}
	in := strings.NewReader("E\x00\x00\x00\x06no" + "Z\x00\x00\x00\x05I")
	if err := untilReady(in); !errors.Is(err, ErrAnswer) || in.Len() != 0 {
		t.Errorf("%v, %d bytes left", err, in.Len())
	}
	for _, bad := range []string{"", "D\x00\x00\x00", "D\x00\x00\x00\x01", "D\xff\xff\xff\xff"} {
		if err := untilReady(strings.NewReader(bad)); err == nil {
			t.Errorf("%q passed", bad)
		}
	}
}
