package nodeprofile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Options name the cluster, and what to report about it. All are required.
type Options struct {
	// Cluster is its name.
	Cluster string
	// Draw returns what is to be reported now, as data of the ConfigMap; an error means that
	// nothing is known of the nodes.
	Draw func(ctx context.Context) (map[string]string, error)
	// Back returns a channel that is closed while the hub is there, a new one each time
	// that the hub was away.
	Back func() <-chan struct{}
}

const (
	// debouncePeriod is how long changes are collected: several come at once.
	debouncePeriod = time.Second
	// every is how often a report is sent at most.
	every = 10 * time.Second
	// longest is how long is waited at most after the hub has refused it.
	longest = 5 * time.Minute
	// passing is how many errors in a row are not logged: a cluster that was just
	// registered waits for its RBAC rules.
	passing = 4
)

// errUnknown says that nothing is known of the nodes, as while the member is away.
var errUnknown = errors.New("nothing is known of the nodes")

// Publisher publishes the profile of one cluster. Use New.
type Publisher struct {
	hub       client.Client
	options   Options
	changed   chan struct{}
	published map[string]string // what the hub has
	by        <-chan struct{}   // Back when that was written; nil: what the hub has is not known
	faults    int               // in a row
	failing   string            // what was logged last
}

// New returns a Publisher. It publishes once Run is called.
func New(hub client.Client, o Options) *Publisher {
	return &Publisher{hub: hub, options: o, changed: make(chan struct{}, 1)}
}

// Changed records that there may be something new to publish. It never blocks.
func (t *Publisher) Changed() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// Run publishes until ctx ends.
func (t *Publisher) Run(ctx context.Context) {
	for t.await(ctx, t.changed) && t.await(ctx, t.options.Back()) && t.sleep(ctx, debouncePeriod) {
		select { // the coming report includes all changes until now
		case <-t.changed:
		default:
		}
		err := t.publish(ctx)
		t.report(ctx, err)
		if !t.sleep(ctx, t.pause(err)) {
			return
		}
	}
}

// pause returns how long to wait after an attempt to publish, and requests another one
// after an error.
func (t *Publisher) pause(err error) time.Duration {
	if err == nil {
		t.faults = 0
		return every
	}
	t.Changed()
	pause := debouncePeriod << min(t.faults, 10)
	t.faults++
	if errors.Is(err, errUnknown) {
		return min(pause, every)
	}
	return min(pause, longest)
}

func (t *Publisher) await(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-done:
		return true
	}
}

func (t *Publisher) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// publish writes the profile as it is now to the hub.
func (t *Publisher) publish(ctx context.Context) error {
	back := t.options.Back()
	if t.by != back {
		t.by = nil // the hub may have been set back
	}
	data, err := t.options.Draw(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	if t.by != nil && maps.Equal(t.published, data) {
		return nil
	}
	known := t.by != nil
	t.by = nil
	err = t.write(ctx, data, known)
	if text, some := data[clusterv1alpha1.NodeProfileKey]; some && len(data) > 1 && apierrors.IsForbidden(err) {
		// A hub of an older version accepts the profile only.
		err = t.write(ctx, map[string]string{clusterv1alpha1.NodeProfileKey: text}, false)
	}
	if err != nil {
		return fmt.Errorf("tell of the nodes: %w", err)
	}
	t.published, t.by = data, back
	return nil
}

// write writes the data unless the hub has it; known says that the hub is known to have other data.
func (t *Publisher) write(ctx context.Context, data map[string]string, known bool) error {
	is := object(t.options.Cluster, data)
	if !known {
		current := &corev1.ConfigMap{}
		err := t.hub.Get(ctx, client.ObjectKeyFromObject(is), current)
		switch {
		case apierrors.IsNotFound(err):
			return t.hub.Create(ctx, is)
		case err != nil:
			return err
		case maps.Equal(current.Data, data):
			return nil
		}
	}
	err := t.hub.Update(ctx, is)
	if apierrors.IsNotFound(err) {
		return t.hub.Create(ctx, object(t.options.Cluster, data))
	}
	return err
}

func object(cluster string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: clusterv1alpha1.NodeProfileName},
		Data:       data,
	}
}

// report logs an error that lasts, once.
func (t *Publisher) report(ctx context.Context, err error) {
	switch {
	case err == nil:
		t.failing = ""
	case !errors.Is(err, errUnknown) && t.faults >= passing && err.Error() != t.failing:
		t.failing = err.Error()
		log.FromContext(ctx).Error(err, "the hub does not know what the nodes of the cluster have free and what waits for one, and goes by their sum")
	}
}
