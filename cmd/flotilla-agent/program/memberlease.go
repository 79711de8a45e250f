package program

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/setback"
	"github.com/flotilla-io/flotilla/internal/tenure"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// compete competes for the Lease of the one agent that acts in the cluster. leave releases it,
// and must be called while this agent still owns the data folder, which has its identity.
func (a *agent) compete(ctx context.Context) (leave func(), err error) {
	identity, err := tenure.Identity(a.options.dataDir)
	if err != nil {
		return nil, err
	}
	a.memberLease = tenure.NewMemberLease(tenure.MemberLeaseOptions{Config: a.member, Namespace: metav1.NamespaceSystem, Name: clusterv1alpha1.AgentLease, Identity: identity})
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it outlasts the loops
	done := make(chan error, 1)
	go func() { done <- a.memberLease.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			a.log.Error(err, "the place of the agent in its cluster is not competed for")
		}
	}, nil
}

// awaitLease waits while another agent acts in the cluster. If the member does not answer that
// question, the loops may run: they cannot write to the member.
func (a *agent) awaitLease(ctx context.Context) error {
	stop := func() {}
	defer func() { stop() }()
	return a.memberLease.Await(ctx, func(claimant string) {
		stop()
		stop = func() {}
		if claimant == "" {
			return
		}
		a.log.Info("Another agent acts in this cluster: waiting until it stops, or has been silent for 40s", "agent", claimant, "lease", metav1.NamespaceSystem+"/"+clusterv1alpha1.AgentLease)
		stop = a.options.idle(ctx, a.log, claimant)
	})
}

// idle serves the health endpoints while no loops run: the program is alive, but not ready
// because another agent acts.
func (o *options) idle(ctx context.Context, log logr.Logger, claimant string) (stop func()) {
	if orOff(o.health) == "0" {
		return func() {}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.health)
	if err != nil {
		log.Error(command.Taken(err, o.listening()), "the health of this agent is not served while it waits")
		return func() {}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "another agent acts in this cluster: "+claimant, http.StatusServiceUnavailable)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: idleTimeout}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	return func() {
		_ = server.Close()
		<-done
	}
}

const idleTimeout = 5 * time.Second

// keep ends the loops when another agent holds the Lease.
func (a *agent) keep(ctx context.Context, end context.CancelCauseFunc) {
	for {
		changed := a.memberLease.Changed()
		if other := a.memberLease.OtherHolder(); other != "" {
			end(fmt.Errorf("%w: %s", tenure.ErrHeldByOther, other))
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// offer releases the Lease for a short time now and then while the hub refuses this agent: an
// agent that waits for the Lease may be the one that the hub accepts. If none waits, this
// agent acquires the Lease again and continues.
type offer struct {
	memberLease *tenure.MemberLease
	refused     func() bool
	open        atomic.Bool
}

const (
	// offerPoll is how often the agent checks whether the hub refuses it, and offerEvery
	// how often the Lease is offered meanwhile.
	offerPoll  = 2 * time.Second
	offerEvery = time.Minute
	// offerAnswer is how long a waiting agent takes to acquire the Lease once it has seen it free.
	offerAnswer = 3 * time.Second
)

// offerLasts is for how long the Lease is offered: longer than a waiting agent takes to see it.
func offerLasts() time.Duration { return tenure.LongestPoll() + offerAnswer }

// run offers the Lease until ctx ends.
func (o *offer) run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if !o.refused() {
			return
		}
		o.open.Store(true)
		o.memberLease.Yield()
		pause(ctx, offerLasts())
		o.open.Store(false)
		if ctx.Err() == nil {
			o.memberLease.Want()
			pause(ctx, offerEvery)
		}
	}, offerPoll)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// marker is a Checker that requires the Lease: an agent without it must not write its
// conclusions to the member.
type marker struct {
	*setback.Checker
	offer *offer
}

// Weigh implements members.Marker. It fails if another agent acts in the member.
func (m marker) Weigh(ctx context.Context, cluster string, mark *hubclaim.Mark) error {
	if !m.offer.open.Load() {
		m.offer.memberLease.Want()
	}
	if err := m.offer.memberLease.Check(); err != nil {
		return err
	}
	return m.Checker.Weigh(ctx, cluster, mark)
}

// Yield implements members.Yielder: the member belongs to another hub, whose agent may wait
// for this one to release the Lease.
func (m marker) Yield() { m.offer.memberLease.Yield() }

// heldByOther reports whether a run has ended because another agent acts in the cluster.
func heldByOther(err error) bool { return errors.Is(err, tenure.ErrHeldByOther) }
