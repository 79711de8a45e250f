package reconciler

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
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

// recorder takes the Events of all loops.
type recorder interface {
	Event(obj runtime.Object, eventType, reason, message string)
}

// recorder returns what writes the loops' Events, and sees to it that there are those
// that are asked for.
func (r Reporting) recorder(mgr ctrl.Manager, registry prometheus.Registerer) (recorder, error) {
	if r != ReportKarmada {
		return mgr.GetEventRecorderFor("flotilla"), nil //nolint:staticcheck // Karmada's and Flux's clients read core/v1 Events
	}
	cfg := rest.CopyConfig(mgr.GetConfig())
	cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	hub, err := typedcorev1.NewForConfigAndClient(cfg, mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("set up the writer of events: %w", err)
	}
	writer := eventwriter.New(&typedcorev1.EventSinkImpl{Interface: hub.Events("")}, mgr.GetScheme(), eventwriter.Options{Metrics: registry, Tenant: tenantOf})
	if err := mgr.Add(writer); err != nil {
		return nil, err
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
