package chaos

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/flotilla-io/flotilla/e2e/chaos/history"
)

var (
	number = flag.Int("faults", 10, "how many faults there are")
	seed   = flag.Uint64("seed", 0, "what the faults follow; 0 takes a new one")
	still  = flag.Duration("still", 15*time.Second, "for how long nothing may be written in the end")
)

// TestChaos disturbs a fleet while users change it. Afterwards it holds what they
// wrote, in every cluster, nothing went or came back that they did not ask for, and it
// is at rest.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts processes")
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("%d faults by the seed %d", *number, *seed)
	w := start(t)
	w.prepare(t)

	var log journal
	var watches, writers sync.WaitGroup
	watching, stopWatching := context.WithCancel(t.Context())
	defer stopWatching()
	for name, member := range w.members {
		for _, gvr := range resources {
			watches.Go(func() {
				if err := follow(watching, name, member, gvr, &log); err != nil {
					t.Error(err)
				}
			})
		}
	}
	using, stopUsing := context.WithCancel(t.Context())
	defer stopUsing()
	for user := range users {
		writers.Go(func() {
			if err := w.use(using, user, *seed, &log); err != nil {
				t.Error(err)
			}
		})
	}
	w.disturb(t, *number, rand.New(rand.NewPCG(*seed, 0)))
	stopUsing()
	writers.Wait()
	w.recover(t, &log)
	w.atRest(t)
	stopWatching()
	watches.Wait()

	end, err := w.end(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range history.Check(history.History{Writes: log.writes, Sights: log.sights, End: end}) {
		t.Errorf("%s: %s", v.Invariant, v.Because)
	}
	w.discreet(t)
	t.Logf("%d writes, %d sights, %d objects in the end", len(log.writes), len(log.sights), len(end.Hub))
}

// recover waits until the fleet has what users wrote, without help.
func (w *world) recover(t *testing.T, log *journal) {
	t.Helper()
	w.revive(t)
	w.ready(t)
	defer w.explain(t)
	eventually(t, 5*time.Minute, "every cluster has what it is to have", func(ctx context.Context) error {
		w.revive(t)
		end, err := w.end(ctx)
		if err != nil {
			return err
		}
		var all []error
		for _, v := range history.Check(history.History{Writes: log.writes, End: end}) {
			all = append(all, errors.New(v.Invariant+": "+v.Because))
		}
		return errors.Join(all...)
	})
}

// explain shows what the fleet says of itself, if the test has failed.
func (w *world) explain(t *testing.T) {
	t.Helper()
	if !t.Failed() {
		return
	}
	for _, args := range [][]string{{"status"}, {"get", "clusters", "-o", "wide"}, {"get", "rb", "-n", namespace, "-o", "yaml"}} {
		out, err := exec.Command(program("flotilla"), append(args, "--kubeconfig", w.Hub.Kubeconfig)...).CombinedOutput() //nolint:noctx // the test's context may be over
		t.Logf("flotilla %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// atRest checks I8: nothing is written any more, but for leases. What trails behind,
// such as the status of what came last, is waited for.
func (w *world) atRest(t *testing.T) {
	t.Helper()
	before := ""
	eventually(t, 5*time.Minute, fmt.Sprintf("nothing is written for %s", *still), func(ctx context.Context) error {
		first, err := w.revisions(ctx)
		if err != nil {
			return err
		}
		pause(ctx, *still)
		second, err := w.revisions(ctx)
		if err != nil {
			return err
		}
		if before = differences(first, second); before != "" {
			return fmt.Errorf("written meanwhile: %s", before)
		}
		return nil
	})
}

// revisions are those of all objects of the control plane.
func (w *world) revisions(ctx context.Context) (map[string]string, error) {
	config, err := w.Hub.Config()
	if err != nil {
		return nil, err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := kinds.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, resources := range lists {
		gv, err := schema.ParseGroupVersion(resources.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range resources.APIResources {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(gv.WithKind(resource.Kind))
			if resource.Kind == "Lease" || resource.Kind == "Event" || w.hub.List(ctx, list) != nil {
				continue
			}
			for _, item := range list.Items {
				out[resource.Kind+" "+item.GetNamespace()+"/"+item.GetName()] = item.GetResourceVersion()
			}
		}
	}
	return out, nil
}

func differences(a, b map[string]string) string {
	var out []string
	for key, was := range a {
		if b[key] != was {
			out = append(out, key)
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok {
			out = append(out, key)
		}
	}
	return strings.Join(out, ", ")
}

// discreet checks I9: no log has what Secrets hold.
func (w *world) discreet(t *testing.T) {
	t.Helper()
	raw, err := json.Marshal(base64.StdEncoding.EncodeToString([]byte(canary)))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range append(w.disturbed(), w.Hub) {
		content, err := os.ReadFile(p.Log)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			if strings.Contains(line, canary) || strings.Contains(line, strings.Trim(string(raw), `"=`)) {
				t.Errorf("I9: the log of %s shows a Secret: %s", p.Name, line)
			}
			if strings.Contains(line, "Observed a panic") {
				t.Errorf("%s panicked: %s", p.Name, line)
			}
		}
	}
}
