// Package heartbeat shows the hub that an agent is alive, by renewing the Lease that
// has the cluster's name.
//
// In go a client of the hub and an interval; out come renewals, one request each. Of the
// member a renewal only reports whether it answers the agent: its state belongs in the
// Cluster's status. The package tries nothing while the hub is away, and never makes up for
// renewals that it missed.
package heartbeat

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Options name the cluster whose Lease is renewed, and how. Cluster, Own and Back are required.
type Options struct {
	// Cluster is the name of the cluster.
	Cluster string
	// Own returns the cluster as the hub has it; nil while it is not registered.
	Own func(context.Context) *clusterv1alpha1.Cluster
	// Back returns a channel that is closed while the hub is there.
	Back func() <-chan struct{}
	// Note returns annotations to write with the next renewal; an empty value removes one.
	// Nil writes none. A value on Soon renews at once: an annotation that cannot wait for
	// the next renewal is sent so.
	Note func() map[string]string
	// Answers checks whether the member is there, before each renewal. Nil: it is.
	Answers func(context.Context) bool
	// Soon renews the Lease at once; nil never does.
	Soon <-chan struct{}
	// Duration is how long the Lease holds; zero means 40 s.
	Duration time.Duration
	// Fraction of Duration after which the Lease is renewed; zero means a quarter.
	Fraction float64
	// Clock is the time; nil means the machine's.
	Clock clock.WithTicker
}

// Renewer renews one Lease. Use New.
type Renewer struct {
	hub     client.Client
	options Options
	lease   *coordinationv1.Lease // as last written; nil: to be read
	began   metav1.MicroTime      // by the clock of Options
	silent  bool                  // the member did not answer before the renewal that is under way
	failing string
}

// New returns a Heart. It renews the Lease once Run is called.
func New(hub client.Client, o Options) *Renewer {
	if o.Duration == 0 {
		o.Duration = 40 * time.Second
	}
	if o.Fraction == 0 {
		o.Fraction = 0.25
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Renewer{hub: hub, options: o, began: metav1.NewMicroTime(o.Clock.Now())}
}

// Run beats until ctx ends.
func (h *Renewer) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.options.Back():
		}
		if cluster := h.options.Own(ctx); cluster != nil {
			h.report(ctx, h.attempt(ctx, cluster))
		}
		timer := h.options.Clock.NewTimer(h.every())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-h.options.Soon:
			timer.Stop()
		case <-timer.C():
		}
	}
}

// attempt renews the Lease: based on what was written last, or on what the hub has if somebody
// else wrote it or an answer was lost. An attempt is given up when the next one is due,
// but not before leastTime: the next one tries again.
func (h *Renewer) attempt(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	h.silent = h.options.Answers != nil && !h.options.Answers(ctx)
	ctx, cancel := context.WithTimeout(ctx, max(h.every(), leastTime))
	defer cancel()
	err := h.renew(ctx, cluster)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		err = h.renew(ctx, cluster)
	}
	return err
}

// leastTime is what the hub is given to answer, however often the Lease is renewed.
const leastTime = 5 * time.Second

func (h *Renewer) every() time.Duration {
	return time.Duration(float64(h.options.Duration) * h.options.Fraction)
}

func (h *Renewer) renew(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	if h.lease == nil {
		current := &coordinationv1.Lease{}
		err := h.hub.Get(ctx, client.ObjectKey{Namespace: workv1alpha2.NamespaceKarmadaCluster, Name: h.options.Cluster}, current)
		switch {
		case apierrors.IsNotFound(err):
			return h.create(ctx, cluster)
		case err != nil:
			return fmt.Errorf("read the lease of the cluster: %w", err)
		}
		h.lease = current
	}
	next := h.lease.DeepCopy()
	h.fill(next, cluster)
	err := h.hub.Update(ctx, next)
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		h.lease = nil
		return err
	case err != nil:
		return fmt.Errorf("renew the lease of the cluster: %w", err)
	}
	h.lease = next
	return nil
}

func (h *Renewer) create(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.NamespaceKarmadaCluster, Name: h.options.Cluster}}
	h.fill(lease, cluster)
	if err := h.hub.Create(ctx, lease); err != nil {
		return fmt.Errorf("make the lease of the cluster: %w", err)
	}
	h.lease = lease
	return nil
}

func (h *Renewer) fill(lease *coordinationv1.Lease, cluster *clusterv1alpha1.Cluster) {
	lease.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: clusterv1alpha1.ResourceKindCluster, Name: cluster.Name, UID: cluster.UID,
	}}
	if h.options.Note != nil {
		for key, value := range h.options.Note() {
			if value == "" {
				delete(lease.Annotations, key)
				continue
			}
			metav1.SetMetaDataAnnotation(&lease.ObjectMeta, key, value)
		}
	}
	lease.Spec.HolderIdentity = ptr.To(h.options.Cluster)
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(h.options.Duration.Seconds()))
	lease.Spec.AcquireTime = h.began.DeepCopy() // what is recorded of this cluster may be older
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(h.options.Clock.Now()))
	delete(lease.Annotations, clusterv1alpha1.SilentAnnotation)
	if h.silent {
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, clusterv1alpha1.SilentAnnotation, lease.Spec.RenewTime.UTC().Format(metav1.RFC3339Micro))
	}
}

// report logs an error once, and none while the hub is away: the connection reports that.
func (h *Renewer) report(ctx context.Context, err error) {
	text := ""
	if err != nil && !apierrors.IsConflict(err) && isOpen(h.options.Back()) {
		text = err.Error()
	}
	if text != "" && text != h.failing {
		log.FromContext(ctx).Error(err, "the hub does not take the sign of life")
	}
	h.failing = text
}

func isOpen(back <-chan struct{}) bool {
	select {
	case <-back:
		return true
	default:
		return false
	}
}
