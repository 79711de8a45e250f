package karmadactl

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// fromKarmada is what Karmada's API server has.
const fromKarmada = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example/web:1"}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: web, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  overrideRules:
    - targetCluster: {clusterNames: [west]}
      overriders: {imageOverrider: [{component: Registry, operator: replace, value: mirror.example}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement:
    clusterAffinity: {clusterNames: [east, west]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference:
        staticWeightList:
          - {targetCluster: {clusterNames: [east]}, weight: 2}
          - {targetCluster: {clusterNames: [west]}, weight: 1}
`

// asKarmadaLeavesIt is what a cluster has of that: its name, replicas and the registry of the image are filled in.
const asKarmadaLeavesIt = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {karmada.io/managed: "true"}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels:
    karmada.io/managed: "true"
    propagationpolicy.karmada.io/permanent-id: 6a2a7c1c-0000-4000-8000-000000000001
    resourcebinding.karmada.io/permanent-id: 6a2a7c1c-0000-4000-8000-000000000002
    work.karmada.io/permanent-id: 6a2a7c1c-0000-4000-8000-000000000003
  annotations:
    propagationpolicy.karmada.io/name: web
    propagationpolicy.karmada.io/namespace: shop
    resourcebinding.karmada.io/name: web-deployment
    resourcebinding.karmada.io/namespace: shop
    work.karmada.io/conflict-resolution: abort
    work.karmada.io/name: web-56d6c779bb
    work.karmada.io/namespace: karmada-es-%s
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "%s/web:1"}]}
`

// leftOver is what Karmada left in a cluster where nothing asks for it any more.
const leftOver = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: aggregated, namespace: default, labels: {karmada.io/managed: "true"}, annotations: {work.karmada.io/name: aggregated-5bdc8d9b4f, work.karmada.io/namespace: karmada-es-west}}
spec:
  replicas: 0
  selector: {matchLabels: {app: aggregated}}
  template:
    metadata: {labels: {app: aggregated}}
    spec: {containers: [{name: it, image: "registry.example/it:1"}]}
`

// itsPrograms stand for Karmada's, in the cluster that it runs in.
const itsPrograms = `
apiVersion: v1
kind: Namespace
metadata: {name: karmada-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: karmada-controller-manager, namespace: karmada-system}
spec:
  selector: {matchLabels: {app: karmada-controller-manager}}
  template:
    metadata: {labels: {app: karmada-controller-manager}}
    spec: {containers: [{name: it, image: "example/karmada-controller-manager:1"}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: karmada-scheduler, namespace: karmada-system}
spec:
  selector: {matchLabels: {app: karmada-scheduler}}
  template:
    metadata: {labels: {app: karmada-scheduler}}
    spec: {containers: [{name: it, image: "example/karmada-scheduler:1"}]}
`

// move is somebody who comes from Karmada, with a folder of files and a shell.
type move struct {
	*testing.T
	karmada *fleet.Fleet // an API server with Karmada's kinds that nobody works for, and its clusters
	dir     string
}

// TestThePage runs the commands of docs/from-karmada.md, there and back: what runs in the clusters is the same
// afterwards.
func TestThePage(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	there, serve, over, back := commands(t)
	karmada, err := fleet.Start(t.Context(), fleet.Options{Dir: fleet.Folder(t), Members: []string{"east", "west"}, Nodes: 1, HubArgs: []string{"--controllers=-*"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := karmada.Stop(); err != nil {
			t.Error(err)
		}
	})
	m := move{t, karmada, fleet.Folder(t)}
	m.prepare()
	before := m.running(4, 2)

	m.shell(there)
	m.serve(serve)
	m.shell(over)
	m.until("the Deployment is this control plane's in both clusters", func(ctx context.Context) error {
		for name, member := range karmada.Clients {
			web := &appsv1.Deployment{}
			if err := member.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web"}, web); err != nil {
				return err
			}
			if web.Annotations[workv1alpha2.HubAnnotation] == "" {
				return fmt.Errorf("not in %s", name)
			}
		}
		return nil
	})
	if diff := cmp.Diff(before, m.running(4, 2)); diff != "" {
		t.Errorf("something restarted (-before +after):\n%s", diff)
	}
	if explained := m.shell(`KUBECONFIG=$PWD/hub/admin.kubeconfig flotilla explain deployment/web -n shop`); !strings.Contains(explained, "east 4, west 2") {
		t.Errorf("it runs elsewhere:\n%s", explained)
	}
	if listed := m.shell(leftOvers.FindString(over)); !regexp.MustCompile(`default +aggregated +<none>`).MatchString(listed) || !regexp.MustCompile(`shop +web +[0-9a-f-]{36}`).MatchString(listed) {
		t.Errorf("it is not seen what is left over in west:\n%s", listed)
	}

	m.shell(back)
	if diff := cmp.Diff(before, m.running(4, 2)); diff != "" {
		t.Errorf("something restarted on the way back (-before +after):\n%s", diff)
	}
	for name, member := range karmada.Clients {
		web := &appsv1.Deployment{}
		if err := member.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, web); err != nil || web.Labels["karmada.io/managed"] != "true" {
			t.Errorf("Karmada finds in %s: %v, %v", name, web.Labels, err)
		}
	}
}

// block is a shell's block of a page.
var block = regexp.MustCompile("(?s)```sh\n(.*?)```")

// leftOvers is the command of the page that shows what Karmada left in a cluster.
var leftOvers = regexp.MustCompile(`(?m)^kubectl .*\n  -o custom-columns=.*`)

// commands are those of the page: before the control plane is started, what starts it, after that, and those
// that lead back.
func commands(t *testing.T) (there, serve, over, back string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/from-karmada.md")
	if err != nil {
		t.Fatal(err)
	}
	way, rest, found := strings.Cut(string(page), "\n## Going back\n")
	if !found {
		t.Fatal("the page leads nowhere back")
	}
	for _, b := range block.FindAllStringSubmatch(way, -1) {
		switch text := b[1]; {
		case strings.HasPrefix(text, "flotillad serve "):
			serve = text
		case serve == "":
			there += text
		default:
			over += text
		}
	}
	for _, b := range block.FindAllStringSubmatch(rest, -1) {
		back += b[1]
	}
	if there == "" || serve == "" || over == "" || back == "" {
		t.Fatalf("a part of the way is missing:\n%s\n%s\n%s\n%s", there, serve, over, back)
	}
	return there, serve, over, back
}

// prepare makes the files that the page speaks of, and what Karmada has in its clusters.
func (m move) prepare() {
	m.Helper()
	for file, from := range map[string]*localfleet.Process{
		"karmada.config": m.karmada.Hub, "host.config": m.karmada.Members["east"], "east.config": m.karmada.Members["east"], "west.config": m.karmada.Members["west"],
	} {
		content, err := os.ReadFile(from.Kubeconfig)
		if err == nil {
			err = os.WriteFile(filepath.Join(m.dir, file), content, 0o600)
		}
		if err != nil {
			m.Fatal(err)
		}
	}
	shim := "#!/bin/sh\nexec " + fleet.Program("flotilla") + ` kubectl "$@"` + "\n"
	if err := os.WriteFile(filepath.Join(m.dir, "kubectl"), []byte(shim), 0o700); err != nil {
		m.Fatal(err)
	}
	for _, at := range []struct{ config, manifests string }{
		{"karmada.config", fromKarmada}, {"host.config", itsPrograms},
		{"east.config", fmt.Sprintf(asKarmadaLeavesIt, "east", 4, "registry.example")}, {"west.config", fmt.Sprintf(asKarmadaLeavesIt, "west", 2, "mirror.example")}, {"west.config", leftOver},
	} {
		m.shell("kubectl --kubeconfig " + at.config + " create --field-manager=karmada-controller-manager -f - <<'END'\n" + at.manifests + "END\n")
	}
}

// shell runs commands in the folder, and returns what they print.
func (m move) shell(commands string) string {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.Context(), fleet.Slack*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-eu", "-c", commands)
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), "PATH="+m.dir+":"+filepath.Dir(fleet.Program("flotilla"))+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.Fatalf("%v:\n%s\n%s", err, commands, out)
	}
	return string(out)
}

// serve starts the control plane, at a port that is free.
func (m move) serve(line string) {
	m.Helper()
	words := append(strings.Fields(line), "--secure-port", "0")
	cmd := exec.CommandContext(context.WithoutCancel(m.Context()), fleet.Program(words[0]), words[1:]...)
	cmd.Dir = m.dir
	out := &strings.Builder{}
	ready, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for buffer := make([]byte, 4096); !strings.Contains(out.String(), " is ready after "); {
		n, err := ready.Read(buffer)
		if err != nil {
			m.Fatalf("it ends with %v: %s", err, out)
		}
		out.Write(buffer[:n])
	}
}

// running are the pods and ReplicaSets of the Deployment in the clusters, once all of its pods are ready.
func (m move) running(east, west int) map[string][]string {
	m.Helper()
	out := map[string][]string{}
	m.until("the Deployment runs", func(ctx context.Context) error {
		for name, want := range map[string]int{"east": east, "west": west} {
			var pods corev1.PodList
			var sets appsv1.ReplicaSetList
			for _, list := range []client.ObjectList{&pods, &sets} {
				if err := m.karmada.Clients[name].List(ctx, list, client.InNamespace("shop")); err != nil {
					return err
				}
			}
			out[name] = nil
			for i := range pods.Items {
				if pods.Items[i].Status.Phase == corev1.PodRunning {
					out[name] = append(out[name], "Pod "+string(pods.Items[i].UID))
				}
			}
			if len(out[name]) != want || len(pods.Items) != want {
				return fmt.Errorf("%d of %d pods run in %s, want %d", len(out[name]), len(pods.Items), name, want)
			}
			for i := range sets.Items {
				out[name] = append(out[name], "ReplicaSet "+string(sets.Items[i].UID))
			}
			slices.Sort(out[name])
		}
		return nil
	})
	return out
}

func (m move) until(what string, check func(ctx context.Context) error) {
	m.Helper()
	if err := fleet.Until(m.Context(), 100*time.Millisecond, fleet.Slack*30*time.Second, check); err != nil {
		m.Fatalf("%s: %v", what, err)
	}
}
