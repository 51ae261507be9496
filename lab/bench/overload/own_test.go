package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/lab/limiter"
)

func TestWhatAProxyTakesIsShownBesideHAProxy(t *testing.T) {
	var b bytes.Buffer
	if err := printOwn(&b, []own{{Name: rowHAProxy, PerCore: 60000}, {Name: rowGate, PerCore: 30000, Refused: 3}}); err != nil {
		t.Fatal(err)
	}
	gate := strings.Fields(strings.Split(b.String(), "\n")[2])
	if gate[0] != rowGate || gate[4] != "0.50" || gate[8] != "3" {
		t.Errorf("%q", gate)
	}
}

func TestAProxyRefusesWhatIsOverItsLimitAndLearnsFromTheRest(t *testing.T) {
	inside, answer := make(chan struct{}), make(chan struct{})
	behind := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside <- struct{}{}; <-answer }))
	defer behind.Close()
	by, _ := limiter.New(limiter.Envoy)
	p := newProxy(strings.TrimPrefix(behind.URL, "http://"), by)
	front := httptest.NewServer(p)
	defer front.Close()
	o := &options{Patience: time.Minute, Reuse: true}
	c := o.newClient(front.URL, 0)
	defer c.close()
	ends := make(chan ending)
	for range by.Limit() {
		go func() { ends <- c.try(t.Context(), normal) }()
		<-inside
	}
	if got := c.try(t.Context(), critical); got != shed {
		t.Errorf("%v with as many under way as the limit allows, want shed", got)
	}
	close(answer)
	for range by.Limit() {
		if got := <-ends; got != answered {
			t.Errorf("%v, want answered", got)
		}
	}
}

func TestAClientTriesAgainWhenItIsRefused(t *testing.T) {
	times := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if times++; times < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer s.Close()
	o := &options{Patience: time.Minute}
	out := o.newClient(s.URL, 2).send(t.Context(), []request{{0, normal}})
	if out[0].End != answered || out[0].Tries != 3 || out[0].Shed != 2 {
		t.Errorf("%+v", out[0])
	}
}
