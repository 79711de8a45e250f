package listing

import (
	"context"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Cluster is a cluster with what is known about it since the control plane was started.
type Cluster struct {
	*clusterv1alpha1.Cluster
	// Heard is when its agent last renewed its Lease, by the control plane's clock. Zero if
	// it never did, if there is no agent, or if the user may not read Leases.
	Heard time.Time
}

// Clusters returns all clusters. One that was ready before the control plane was started and has not
// reported since is not shown as ready: it may have failed meanwhile. leases is false if the user may
// not read the Leases of agents. trim, which may be nil, removes parts of each cluster to save
// memory.
func Clusters(ctx context.Context, hub client.Reader, trim func(*clusterv1alpha1.Cluster)) (clusters []Cluster, leases bool, err error) {
	pull := false
	err = Each(ctx, hub, &clusterv1alpha1.ClusterList{}, func(c *clusterv1alpha1.Cluster) {
		if trim != nil {
			trim(c)
		}
		clusters = append(clusters, Cluster{Cluster: c})
		pull = pull || c.Spec.SyncMode == clusterv1alpha1.Pull
	})()
	if err != nil {
		return nil, false, err
	}
	last := map[string]time.Time{}
	if pull {
		err = Each(ctx, hub, &coordinationv1.LeaseList{}, func(l *coordinationv1.Lease) {
			last[l.Name] = heard(l)
		}, client.InNamespace(workv1alpha2.NamespaceKarmadaCluster))()
	}
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, false, err
	}
	from := startOf(ctx, hub)
	for i := range clusters {
		c := &clusters[i]
		if c.Spec.SyncMode == clusterv1alpha1.Pull {
			c.Heard = last[c.Name]
		}
		from.doubt(c)
	}
	return clusters, err == nil, nil
}

// heard returns when an agent last renewed its Lease, by the clock of the server, which records the
// time of each write: the agent's own clock may be wrong. It returns zero if it never did.
func heard(l *coordinationv1.Lease) time.Time {
	if l.Spec.RenewTime == nil {
		return time.Time{}
	}
	for _, e := range l.ManagedFields {
		if e.Time != nil && e.FieldsV1 != nil && strings.Contains(e.FieldsV1.GetRawString(), `"f:renewTime"`) {
			return e.Time.Time
		}
	}
	return l.Spec.RenewTime.Time
}

// How long it takes after a start until the status of all clusters is up to date: in push mode, when
// the control plane has asked each, and in pull mode, when it has waited for the agent.
const (
	asked  = 20 * time.Second
	waited = 60 * time.Second
)

// WithoutKinds removes the list of APIs that a cluster serves, by far its largest part.
func WithoutKinds(c *clusterv1alpha1.Cluster) { c.Status.APIEnablements = nil }

// SharingKinds returns a function that makes clusters with the same APIs share their list, which is by far
// the largest part.
func SharingKinds() func(*clusterv1alpha1.Cluster) {
	var known [][]clusterv1alpha1.APIEnablement
	return func(c *clusterv1alpha1.Cluster) {
		for _, served := range known {
			if equality.Semantic.DeepEqual(served, c.Status.APIEnablements) {
				c.Status.APIEnablements = served
				return
			}
		}
		known = append(known, c.Status.APIEnablements)
	}
}

// start is when a control plane was started, and its current time. The zero value means not known.
type start struct{ at, now time.Time }

// startOf returns the start of a control plane, and reads it if it is not known yet.
func startOf(ctx context.Context, hub client.Reader) start {
	a, ok := hub.(*attentive)
	if !ok {
		return start{}
	}
	if s := a.clock.start(); !s.at.IsZero() {
		return s
	}
	_, _ = a.began(ctx) // on an error it stays unknown
	return a.clock.start()
}

// doubt sets the condition Ready of a cluster that has not reported since the start to Unknown.
func (s start) doubt(c *Cluster) {
	ready := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue || !c.CreationTimestamp.Time.Before(s.at) || !ready.LastTransitionTime.Time.Before(s.at) {
		return
	}
	up, most := s.now.Sub(s.at), asked
	if c.Spec.SyncMode == clusterv1alpha1.Pull {
		most = waited
	}
	if up >= most || !c.Heard.Before(s.at) {
		return
	}
	ready.Status, ready.Reason, ready.LastTransitionTime = metav1.ConditionUnknown, clusterv1alpha1.ClusterNotHeardYetReason, metav1.NewTime(s.at)
	ready.Message = "the control plane was started " + duration.HumanDuration(max(up, 0)) + " ago, and has not heard of it since; it was ready before"
}
