package agents

import (
	"context"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

// reporter reports what agents say of their clusters and nobody approved, and how
// clusters are reached; with no events, nobody.
type reporter struct{ events loop.Recorder }

// clusterEvents reports what agents say of their clusters and nobody approved, and of the ways
// to them, which are theirs to change, once each time that it changes. It brings
// nothing into the queue.
func (r reporter) clusterEvents() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ queue) {
			if c, ok := e.Object.(*clusterv1alpha1.Cluster); ok && !e.IsInInitialList {
				r.report(c, "")
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ queue) {
			c, ok := e.ObjectNew.(*clusterv1alpha1.Cluster)
			old, had := e.ObjectOld.(*clusterv1alpha1.Cluster)
			if ok && had {
				r.report(c, old.Annotations[identity.RequestedAnnotation])
				r.reportWay(c, wayTo(old))
			}
		},
	}
}

func (r reporter) report(c *clusterv1alpha1.Cluster, before string) {
	text := c.Annotations[identity.RequestedAnnotation]
	asked, err := identity.ParseProperties(text)
	if r.events == nil || text == before || err != nil || asked.IsZero() {
		return
	}
	r.events.Event(c, corev1.EventTypeWarning, clusterv1alpha1.EventReasonPropertiesNotApproved, fmt.Sprintf(
		"its agent says %s, which does not count until it is approved: flotilla patch cluster %s --type merge -p '%s'", asked.Words(), c.Name, asked.Patch()))
}

// way is how a cluster is reached.
type way struct {
	endpoint, proxy, serverName string
	insecure                    bool
}

func wayTo(c *clusterv1alpha1.Cluster) way {
	return way{c.Spec.APIEndpoint, c.Spec.ProxyURL, c.Annotations[clusterv1alpha1.TLSServerNameAnnotation], c.Spec.InsecureSkipTLSVerification}
}

// String names it for people. The proxy is left out but for its host: its URL may hold
// a password.
func (w way) String() string {
	out := fmt.Sprintf("%q", w.endpoint)
	if w.serverName != "" {
		out += fmt.Sprintf(" as %q", w.serverName)
	}
	if u, err := url.Parse(w.proxy); err == nil && w.proxy != "" {
		out += fmt.Sprintf(" through the proxy %q", u.Host)
	}
	if w.insecure {
		out += ", without a look at its certificate"
	}
	return out
}

// reportWay reports a cluster in pull mode that is reached in another way than before.
func (r reporter) reportWay(c *clusterv1alpha1.Cluster, before way) {
	now := wayTo(c)
	if r.events == nil || now == before || before.endpoint == "" || c.Spec.SyncMode != clusterv1alpha1.Pull {
		return
	}
	r.events.Event(c, corev1.EventTypeWarning, clusterv1alpha1.EventReasonEndpointChanged, fmt.Sprintf("it is reached at %s; before: %s", now, before))
}
