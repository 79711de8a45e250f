package chaos

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	hub     client.Client
	members map[string]dynamic.Interface
	// links lead from the loops to the members that are pushed to, and from the agent
	// to the control plane.
	links map[string]*localfleet.Link
	// loops compete for the lease; agent runs beside the cluster that is pulled.
	loops []*localfleet.Process
	agent *localfleet.Process
	// gates are the ways of loops to the control plane.
	gates map[*localfleet.Process]*gate

	log      journal
	things   [][]*thing                // of each user
	policies map[history.Object]string // by what they place
}

// start makes the fleet, with the loops apart from the control plane, so that either
// can go without the other.
func start(t *testing.T) *world {
	t.Helper()
	f, err := fleet.Start(t.Context(), fleet.Options{Dir: fleet.Folder(t), Members: clusters, Nodes: 1, HubArgs: []string{"--controllers=-*"}})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		Fleet: f, members: map[string]dynamic.Interface{}, links: map[string]*localfleet.Link{},
		gates: map[*localfleet.Process]*gate{}, policies: map[history.Object]string{},
	}
	t.Cleanup(func() { w.stop(t) })
	w.connect(t)
	for _, name := range []string{"a", "b"} {
		w.loop(t, name)
	}
	for _, name := range clusters {
		if name == pulled {
			w.register(t)
		} else {
			w.join(t, name)
		}
	}
	return w
}

func (w *world) connect(t *testing.T) {
	t.Helper()
	config, err := w.Hub.Config()
	if err != nil {
		t.Fatal(err)
	}
	config.Timeout, config.WarningHandler = answer, rest.NoWarnings{}
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
	g, kubeconfig := newGate(t, name, config, w.Dir, &w.log)
	p, err := w.NewLoops(t.Context(), name, kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	w.loops, w.gates[p] = append(w.loops, p), g
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
}

// join joins a member by a link that can be cut.
func (w *world) join(t *testing.T, name string) {
	t.Helper()
	file := w.through(t, name, w.Members[name].Kubeconfig)
	if err := w.Join(t.Context(), name, "--cluster-kubeconfig", file); err != nil {
		t.Fatal(err)
	}
}

// register joins the member that has an agent, which reaches the control plane by a
// link that can be cut.
func (w *world) register(t *testing.T) {
	t.Helper()
	file := w.through(t, pulled, w.Hub.Kubeconfig)
	agent, err := w.NewAgent(t.Context(), pulled, "--karmada-kubeconfig", file, "--cluster-name", pulled, "--kubeconfig", w.Members[pulled].Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	w.agent = agent
}

// through writes a copy of a kubeconfig that leads through a link.
func (w *world) through(t *testing.T, name, kubeconfig string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		host := strings.TrimPrefix(cluster.Server, "https://")
		link, err := localfleet.NewLink(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		w.links[name] = link
		cluster.Server = "https://" + link.Address()
	}
	file := filepath.Join(w.Dir, name+".kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
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
	if err = errors.Join(err, w.Stop()); err != nil {
		t.Error(err)
	}
}

// disturbed are the programs that are killed, but for the control plane.
func (w *world) disturbed() []*localfleet.Process {
	return slices.DeleteFunc(append(slices.Clone(w.loops), w.agent), func(p *localfleet.Process) bool { return p == nil })
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
