package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/flotilla-io/flotilla/e2e/chaos/history"
	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// atRest returns a time in which nobody wrote, and else the last one that it looked
// at. What trails behind, such as the status of what came last, is waited for; so is
// what the server notes of its compaction, every five minutes.
func (w *world) atRest(t *testing.T) history.Stretch {
	t.Helper()
	var last history.Stretch
	for end := time.Now().Add(5*time.Minute + 2**still); time.Now().Before(end); {
		stretch, written, err := w.stretch(t.Context(), *still)
		if err != nil {
			t.Fatal(fmt.Errorf("at rest: %w", err))
		}
		if last = stretch; stretch.Revisions == stretch.Leases && len(stretch.Changed) == 0 {
			break
		}
		t.Logf("not at rest yet: %d revisions, of them %d of leases; on the control plane: %s; in members: %s",
			stretch.Revisions, stretch.Leases, written, strings.Join(stretch.Changed, ", "))
	}
	return last
}

// stretch looks at what is written for some time, and which of the control plane's
// objects that were.
func (w *world) stretch(ctx context.Context, long time.Duration) (out history.Stretch, written string, err error) {
	hub, err := w.dynamicHub()
	if err != nil {
		return out, "", err
	}
	begun := time.Now()
	first, err1 := w.revisions(ctx)
	inMembers, err2 := w.inMembers(ctx)
	from, err3 := revision(ctx, hub)
	pause(ctx, long)
	to, err4 := revision(ctx, hub)
	out.For = time.Since(begun)
	membersAfter, err5 := w.inMembers(ctx)
	second, err6 := w.revisions(ctx)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return out, "", err
	}
	out.Revisions = to - from
	if out.Leases, err = leases(ctx, hub, from, to); err != nil {
		return out, "", err
	}
	out.Changed = differences(inMembers, membersAfter)
	return out, strings.Join(differences(first, second), ", "), nil
}

// revision is that of the control plane's store.
func revision(ctx context.Context, hub dynamic.Interface) (int64, error) {
	list, err := hub.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(list.GetResourceVersion(), 10, 64)
}

// leases counts the writes of leases after a revision, up to another one. They are
// renewed all the time, so that one comes after that, too.
func leases(ctx context.Context, hub dynamic.Interface, from, to int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	events, err := hub.Resource(schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}).
		Watch(ctx, metav1.ListOptions{ResourceVersion: strconv.FormatInt(from, 10)})
	if err != nil {
		return 0, err
	}
	defer events.Stop()
	count := int64(0)
	for e := range events.ResultChan() {
		obj, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			return 0, fmt.Errorf("watch leases: %v", e.Object)
		}
		revision, err := strconv.ParseInt(obj.GetResourceVersion(), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("watch leases: %v", e.Object)
		}
		if revision > to {
			return count, nil
		}
		count++
	}
	return 0, errors.New("watch leases: no more are written")
}

// inMembers are the revisions of what is in the users' namespace there.
func (w *world) inMembers(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	for cluster, member := range w.members {
		for _, gvr := range resources {
			err := each(ctx, member, gvr, namespace, "", func(obj *unstructured.Unstructured) {
				out["the member "+cluster+": "+string(objectOf(obj))] = obj.GetResourceVersion()
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// objects calls a function with all objects of the control plane.
func (w *world) objects(ctx context.Context, do func(kind string, obj *unstructured.Unstructured)) error {
	config, err := w.config()
	if err != nil {
		return err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	lists, err := kinds.ServerPreferredResources()
	if err != nil {
		return err
	}
	for _, resources := range lists {
		gv, err := schema.ParseGroupVersion(resources.GroupVersion)
		if err != nil {
			return err
		}
		for _, resource := range resources.APIResources {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(gv.WithKind(resource.Kind))
			if !slices.Contains(resource.Verbs, "list") || w.hub.List(ctx, list) != nil {
				continue
			}
			for i := range list.Items {
				do(resource.Kind, &list.Items[i])
			}
		}
	}
	return nil
}

// revisions are those of all objects of the control plane but leases.
func (w *world) revisions(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	return out, w.objects(ctx, func(kind string, obj *unstructured.Unstructured) {
		if kind != "Lease" {
			out[string(nameOf(kind, obj.GetNamespace(), obj.GetName()))] = obj.GetResourceVersion()
		}
	})
}

func differences(a, b map[string]string) []string {
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
	slices.Sort(out)
	return out
}

// metrics reads those of a program.
func (w *world) metrics(ctx context.Context, p *localfleet.Process) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if slices.Contains(w.hubs, p) {
		config, err := p.Config()
		if err != nil {
			return "", err
		}
		client, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			return "", err
		}
		content, err := client.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		return string(content), err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Metrics, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	return string(content), err
}

// hubGarbage is what a control plane keeps of garbage on purpose, as cmd/flotillad says.
const hubGarbage = 512 << 20

// uses are what the programs need now. Loops are counted together, and so are replicas:
// one of them works, the others wait.
func (w *world) uses(ctx context.Context) (map[string]history.Use, error) {
	out := map[string]history.Use{}
	for name, programs := range map[string][]*localfleet.Process{"the control plane": w.hubs, "the loops": w.loops, "the agent": {w.agent}} {
		if len(programs) == 0 {
			continue
		}
		var sum history.Use
		for _, p := range programs {
			content, err := w.metrics(ctx, p)
			if err != nil {
				return nil, fmt.Errorf("the metrics of %s: %w", p.Name, err)
			}
			goroutines, err1 := figure(content, "go_goroutines ")
			status, err2 := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
			// What is mapped from files, such as the store, is the kernel's to take back.
			memory, err3 := figure(string(status), "RssAnon:")
			if err := errors.Join(err1, err2, err3); err != nil {
				return nil, err
			}
			sum.Goroutines += goroutines
			sum.Memory += int64(memory) << 10
		}
		out[name] = sum
	}
	return out, nil
}

// figure returns the one behind some words at the beginning of a line.
func figure(text, words string) (int, error) {
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(line, words); found {
			value, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return int(value), err
		}
	}
	return 0, fmt.Errorf("%q is not there", words)
}

// needs returns what the programs need compared with before, once it is not too much,
// or after some minutes.
func (w *world) needs(t *testing.T, before map[string]history.Use) []history.Program {
	t.Helper()
	var out []history.Program
	for end := time.Now().Add(5 * time.Minute); ; pause(t.Context(), 5*time.Second) {
		after, err := w.uses(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		out = nil
		for name := range before {
			p := history.Program{Name: name, Before: before[name], After: after[name]}
			if name == "the control plane" {
				p.Garbage = hubGarbage * int64(len(w.hubs))
			}
			out = append(out, p)
		}
		if len(history.Check(history.History{Programs: out})) == 0 || time.Now().After(end) || t.Context().Err() != nil {
			break
		}
	}
	for _, p := range out {
		t.Logf("%s: %d goroutines before, %d after; %d MiB before, %d after", p.Name, p.Before.Goroutines, p.After.Goroutines, p.Before.Memory>>20, p.After.Memory>>20)
	}
	return out
}
