package reconciler

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-io/flotilla/reconciler/alerting"
	"github.com/flotilla-io/flotilla/reconciler/secrets/inherited"
)

// alertingLoop is the name of the loop that sends messages.
const alertingLoop = "alerting"

// messages is what loops report by.
type messages struct {
	events    Recorder
	alerting  *alerting.Reconciler // nil if it is not chosen
	inherited *inherited.Known
}

// ofFleet records what loops report by once that is made, for those that are made before.
type ofFleet struct{ *fleet }

// Event implements loop.Recorder.
func (f ofFleet) Event(about runtime.Object, eventType, reason, message string) {
	f.events.Event(about, eventType, reason, message)
}

// listen lets the loop of Alerts see the Events of all loops that are made from here on, if it is chosen.
func (f *fleet) listen() {
	if !f.chosen[alertingLoop] {
		return
	}
	f.alerting = alerting.New(f.mgr.GetClient(), f.mgr.GetAPIReader(), f.events, alerting.Options{
		CrossNamespace: f.opts.Revisions.Tenancy.AllowCrossNamespace, Egress: f.opts.Network.Egress, Secrets: f.inherited, Metrics: f.opts.Metrics,
	})
	f.events = f.inherited.Recorder(f.alerting.Recorder())
}

func registerAlerting(_ context.Context, f *fleet) error { return f.alerting.Register(f.mgr) }
