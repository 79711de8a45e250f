package reconciler

import (
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/finalization"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/eventwriter"
	"github.com/flotilla-io/flotilla/reconciler/reporting"
)

// Reporting selects the successes that are reported as Events.
type Reporting string

const (
	// ReportChanges reports what begins and what fails, and nothing that goes
	// as it should. It is what the empty Reporting means.
	ReportChanges Reporting = "changes"
	// ReportKarmada reports each success that Karmada's controllers report, and
	// dates each successful try to place a binding.
	ReportKarmada Reporting = "karmada"
)

// Check errs if there is no such reporting.
func (r Reporting) Check() error {
	switch r {
	case "", ReportChanges, ReportKarmada:
		return nil
	default:
		return fmt.Errorf("%q is unknown: use %s or %s", string(r), ReportChanges, ReportKarmada)
	}
}

// lasting are the reasons of Events that say what was deleted, handed over or corrected: nothing else says so later, and
// trace reads them.
var lasting = []string{meta.ReconciliationSucceededReason, applier.ReasonDriftCorrected, finalization.ReasonDeleted, siblings.ReasonHandingOver}

// How Events are written where not each success is told.
const (
	promptly        = 50 * time.Millisecond
	promptPerSecond = 200
	promptBurst     = 1000
)

// Recorder takes the Events of all loops.
type Recorder interface {
	Event(obj runtime.Object, eventType, reason, message string)
}

// recorder returns what writes the loops' Events, and sees to it that there are those
// that are asked for.
func (r Reporting) recorder(mgr ctrl.Manager, registry prometheus.Registerer) (Recorder, error) {
	cfg := rest.CopyConfig(mgr.GetConfig())
	cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	hub, err := typedcorev1.NewForConfigAndClient(cfg, mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("set up the writer of events: %w", err)
	}
	opts := eventwriter.Options{Metrics: registry, Tenant: tenantOf, Lasting: lasting}
	if r != ReportKarmada { // there are few, for which people wait
		opts.Moment, opts.PerSecond, opts.Burst = promptly, promptPerSecond, promptBurst
	}
	writer := eventwriter.New(&typedcorev1.EventSinkImpl{Interface: hub.Events("")}, mgr.GetScheme(), opts)
	if err := mgr.Add(writer); err != nil || r != ReportKarmada {
		return writer, err
	}
	reporter := reporting.New(mgr.GetClient(), writer)
	return reporter.Loops(), reporter.Register(mgr)
}

// tenantOf says whose an object is: the namespace that it is in, and of a Work that of its
// binding.
func tenantOf(obj runtime.Object) string {
	switch o := obj.(type) {
	case *workv1alpha1.Work:
		owner, _ := bindings.OwnerOf(o)
		return owner.Namespace
	case *corev1.ObjectReference:
		return o.Namespace
	case metav1.Object:
		return o.GetNamespace()
	default:
		return ""
	}
}
