package chaos

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/e2e/chaos/history"
	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// The clusters, and which of them has an agent. The others are pushed to.
var clusters = []string{"east", "edge", "west"}

const pulled = "edge"

// world is a fleet whose parts can be disturbed one by one.
type world struct {
	*fleet.Fleet
	// hubs are the control planes: one, or replicas on one store.
	hubs []*localfleet.Process
	// kubeconfig leads to the control plane, or to that of the replicas which clients
	// are led to by front.
	kubeconfig string
	front      *front // nil if there is one control plane
	hub        client.Client
	members    map[string]dynamic.Interface
	// links lead from the loops to the members that are pushed to, from the agent to the
	// control plane, and from each replica to the store.
	links map[string]*localfleet.Link
	// loops run apart from the control plane; agent runs beside the cluster that is pulled.
	loops []*localfleet.Process
	agent *localfleet.Process
	// rivals compete for the lease.
	rivals     []*localfleet.Process
	contenders map[*localfleet.Process]*contender
	faults     []fault

	log      *journal
	persons  []*person
	policies map[history.Object]string // by what they place
}

// newWorld has the parts of a fleet that is running.
func newWorld(t *testing.T, f *fleet.Fleet, faults []fault) *world {
	t.Helper()
	w := &world{
		Fleet: f, hubs: []*localfleet.Process{f.Hub}, kubeconfig: f.Hub.Kubeconfig, faults: faults,
		members: map[string]dynamic.Interface{}, links: map[string]*localfleet.Link{},
		contenders: map[*localfleet.Process]*contender{}, log: &journal{}, policies: map[history.Object]string{},
	}
	t.Cleanup(func() { w.stop(t) })
	return w
}

// enlist joins the members, each by a link that can be cut, and waits until all are ready
// for what comes: what is divided among some of them is not divided anew for one that comes
// later.
func (w *world) enlist(t *testing.T) {
	t.Helper()
	for _, name := range clusters {
		if name == pulled {
			w.register(t)
		} else {
			w.join(t, name)
		}
	}
	eventually(t, 3*time.Minute, "the clusters are ready", func(ctx context.Context) error {
		var list clusterv1alpha1.ClusterList
		if err := w.hub.List(ctx, &list); err != nil {
			return err
		}
		if len(list.Items) != len(clusters) {
			return fmt.Errorf("there are %d clusters, want %d", len(list.Items), len(clusters))
		}
		for i := range list.Items {
			c := &list.Items[i]
			if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady) || len(c.Spec.Taints) > 0 || len(c.Status.APIEnablements) == 0 {
				return fmt.Errorf("%s has the conditions %v and the taints %v", c.Name, c.Status.Conditions, c.Spec.Taints)
			}
		}
		return nil
	})
}

// startApart makes a fleet with the loops apart from the control plane, so that either
// can go without the other.
func startApart(t *testing.T) *world {
	t.Helper()
	f, err := fleet.Start(t.Context(), fleet.Options{Dir: fleet.Folder(t), Members: clusters, Nodes: 1, HubArgs: []string{"--controllers=-*"}})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, f, apart)
	w.connect(t)
	for _, name := range []string{"a", "b"} {
		w.loop(t, name)
	}
	w.rivals = w.loops
	w.enlist(t)
	return w
}

// config leads to the control plane as its administrator.
func (w *world) config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	return config, nil
}

func (w *world) connect(t *testing.T) {
	t.Helper()
	config, err := w.config()
	if err != nil {
		t.Fatal(err)
	}
	config.Timeout = answer
	if w.hub, err = client.New(config, client.Options{Scheme: scheme.New()}); err != nil {
		t.Fatal(err)
	}
	for name, member := range w.Members {
		config, err := member.Config()
		if err != nil {
			t.Fatal(err)
		}
		config.WarningHandler = rest.NoWarnings{}
		if w.members[name], err = dynamic.NewForConfig(config); err != nil {
			t.Fatal(err)
		}
	}
}

// loop starts loops whose way to the control plane is a gate.
func (w *world) loop(t *testing.T, name string) {
	t.Helper()
	config, err := w.Hub.Config()
	if err != nil {
		t.Fatal(err)
	}
	g, kubeconfig := newGate(t, name, config, w.Dir, w.log)
	p, err := w.NewLoops(t.Context(), name, kubeconfig, localfleet.LoopbackSources)
	if err != nil {
		t.Fatal(err)
	}
	w.loops, w.contenders[p] = append(w.loops, p), &g.contender
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
}

// join joins a member by a link that can be cut.
func (w *world) join(t *testing.T, name string) {
	t.Helper()
	link, err := w.JoinByLink(t.Context(), name, "--kubeconfig", w.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	w.links[name] = link
}

// register joins the member that has an agent, which reaches the control plane by a
// link that can be cut.
func (w *world) register(t *testing.T) {
	t.Helper()
	file := filepath.Join(w.Dir, pulled+".kubeconfig")
	link, err := fleet.Through(t.Context(), w.kubeconfig, file)
	if err != nil {
		t.Fatal(err)
	}
	w.links[pulled] = link
	agent, err := w.NewAgent(t.Context(), pulled, "--karmada-kubeconfig", file, "--cluster-name", pulled, "--kubeconfig", w.Members[pulled].Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	w.agent = agent
}

func (w *world) stop(t *testing.T) {
	t.Helper()
	var err error
	for _, p := range w.disturbed() {
		err = errors.Join(err, p.Stop())
	}
	for _, link := range w.links {
		err = errors.Join(err, link.Close())
	}
	if w.front != nil {
		err = errors.Join(err, w.front.Close())
	}
	if err = errors.Join(err, w.Stop()); err != nil {
		t.Error(err)
	}
}

// programs are all but the members.
func (w *world) programs() []*localfleet.Process {
	out := slices.Concat(w.hubs, w.loops, []*localfleet.Process{w.agent})
	return slices.DeleteFunc(out, func(p *localfleet.Process) bool { return p == nil })
}

// disturbed are the programs that are started again if they have ended by themselves:
// all but a control plane that is alone.
func (w *world) disturbed() []*localfleet.Process {
	if len(w.hubs) > 1 {
		return w.programs()
	}
	return w.programs()[1:]
}

// answer is how long a user waits for the control plane.
const answer = 10 * time.Second

// eventually waits until check returns nil, and fails the test with its last answer if
// it does not.
func eventually(t *testing.T, within time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	if err := fleet.Until(t.Context(), time.Second, within, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
