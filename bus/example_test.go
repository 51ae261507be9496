package bus_test

import (
	"context"
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/bustest"
)

// Stages know this interface only; natsbus has the same methods over NATS.
func ExampleBus() {
	ctx := context.Background()
	var b bus.Bus = bustest.NewMemory()
	defer b.Close()

	got := make(chan bus.Delivery)
	stop, err := b.Subscribe(ctx, bus.Subscription{
		Kind: trimtab.KindAlert, // stored before Publish returns, delivered at least once
		For:  "example", Consumer: "planner",
		Handle: func(_ context.Context, d bus.Delivery) error {
			got <- d
			return nil // handled; an error brings it again
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	alert := &trimtab.Alert{Workload: "checkout", Name: "Late", Group: "g", Fingerprint: "1", Firing: true, Time: time.Unix(0, 0).UTC()}
	if err := b.Publish(ctx, alert); err != nil {
		fmt.Println(err)
		return
	}
	d := <-got
	fmt.Println(bus.Subject(d.Value.Kind(), d.Value.Key()), d.Value.(*trimtab.Alert).Name)
	// A value that does not validate is never sent.
	fmt.Println(b.Publish(ctx, &trimtab.Alert{Name: "Late"}) != nil)
	// Output:
	// trimtab.alert.checkout Late
	// true
}
