package policies_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// do runs one command. Those that change the world print what became of the
// templates by it.
func (w *world) do(args []string, body string) (string, error) {
	asks := map[string]func([]string) (string, error){
		"show": w.show, "get": w.get, "status": w.status, "rollup": w.rollup, "explain": w.explain, "why": w.why, "flotilla": w.flotilla,
		"bound": w.bound, "verdicts": w.verdicts, "summary": w.summary,
	}
	if ask, ok := asks[args[0]]; ok {
		return ask(args[1:])
	}
	if args[0] == "binding" {
		return w.binding(args[1:], body)
	}
	changes := map[string]func([]string, string) error{
		"clusters": w.doClusters, "lose": w.lose, "leave": w.leave, "label": w.label, "taint": w.taint,
		"apply": w.apply, "deploy": w.deploy, "delete": w.remove, "report": w.doReport, "evict": w.evict, "rebalance": w.rebalance,
		"suspend": w.suspend, "edit": w.editObject,
	}
	change, ok := changes[args[0]]
	if !ok {
		return "", fmt.Errorf("no such command: %s", args[0])
	}
	if err := change(args[1:], body); err != nil {
		return "", err
	}
	return w.converge()
}

// deploy ns/name replicas=N image=I cpu=Q k=v…: a Deployment; k=v are labels.
func (w *world) deploy(args []string, _ string) error {
	namespace, name, _ := strings.Cut(args[0], "/")
	replicas, image, labels, requests := int64(1), "registry.example/app:1.0", map[string]any{}, map[string]any{}
	for _, a := range args[1:] {
		k, v, _ := strings.Cut(a, "=")
		switch k {
		case "replicas":
			n, err := strconv.ParseInt(v, 10, 32)
			if err != nil {
				return err
			}
			replicas = n
		case "image":
			image = v
		case "cpu":
			requests[k] = v
		default:
			labels[k] = v
		}
	}
	w.put(key("Deployment", namespace, name), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": namespace, "name": name, "labels": labels},
		"spec": map[string]any{
			"replicas": replicas,
			"template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "app", "image": image, "resources": map[string]any{"requests": requests}}},
			}},
		},
	}})
	return nil
}

// delete Kind ns/name
func (w *world) remove(args []string, _ string) error {
	k := strings.Join(args, " ")
	delete(w.policies, k)
	delete(w.overrides, k)
	delete(w.priorities, strings.TrimPrefix(k, "PriorityClass "))
	if w.templates[k] != nil {
		delete(w.templates, k)
		delete(w.bindings, k)
		delete(w.reported, k)
		maps.DeleteFunc(w.works, func(wk string, _ *workv1alpha1.Work) bool { return strings.HasSuffix(wk, "/"+k) })
	}
	return nil
}

// report CLUSTER Kind ns/name ready=N | status={…} | fault=text
func (w *world) doReport(args []string, body string) error {
	k := args[1] + " " + args[2]
	var status map[string]any
	fault := ""
	for _, a := range args[3:] {
		switch name, v, _ := strings.Cut(a, "="); name {
		case "ready":
			have, of, _ := strings.Cut(v, "/")
			ready, all := atoi(have), atoi(of)
			status = map[string]any{
				"replicas": all, "updatedReplicas": all, "readyReplicas": ready, "availableReplicas": ready,
			}
		case "fault":
			fault = strings.ReplaceAll(v, "_", " ")
		}
	}
	if body != "" {
		if err := yaml.Unmarshal([]byte(body), &status); err != nil {
			return err
		}
		data, err := json.Marshal(status)
		if err != nil {
			return err
		}
		status = nil
		if err := utiljson.Unmarshal(data, &status); err != nil {
			return err
		}
	}
	return w.report(args[0], k, status, fault)
}

func atoi(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// evict CLUSTER Kind ns/name: move a template away, keeping the old copy until
// the new one is healthy.
func (w *world) evict(args []string, _ string) error {
	b := w.bindings[args[1]+" "+args[2]]
	if b == nil {
		return fmt.Errorf("no binding")
	}
	spec := b.BindingSpec()
	spec.Clusters = slices.DeleteFunc(slices.Clone(spec.Clusters), func(t workv1alpha2.TargetCluster) bool { return t.Name == args[0] })
	spec.GracefulEvictionTasks = append(spec.GracefulEvictionTasks, workv1alpha2.GracefulEvictionTask{
		FromCluster: args[0], PurgeMode: policyv1alpha1.PurgeModeGracefully,
	})
	return nil
}

func (w *world) rebalance(args []string, _ string) error {
	at := metav1.NewTime(w.now.Add(time.Second))
	w.bindings[args[0]+" "+args[1]].BindingSpec().RescheduleTriggeredAt = &at
	return nil
}

// show [CLUSTER]: what clusters hold.
func (w *world) show(args []string) (string, error) {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(w.works)) {
		cluster, name, _ := strings.Cut(k, "/")
		if len(args) > 0 && args[0] != cluster {
			continue
		}
		var obj unstructured.Unstructured
		if err := obj.UnmarshalJSON(w.works[k].Spec.Workload.Manifests[0].Raw); err != nil {
			return "", err
		}
		line := cluster + ": " + name
		if n, ok, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas"); ok {
			line += fmt.Sprintf(" replicas=%d", n)
		}
		if ptr.Deref(w.works[k].Spec.SuspendDispatching, false) {
			line += " suspended"
		}
		if ptr.Deref(w.works[k].Spec.PreserveResourcesOnDeletion, false) {
			line += " preserved"
		}
		out = append(out, line)
	}
	if len(out) == 0 {
		return "nothing", nil
	}
	return strings.Join(out, "\n"), nil
}

// get CLUSTER Kind ns/name /json/pointer…: fields of a manifest; "work" as the
// first pointer asks the Work's own annotations.
func (w *world) get(args []string) (string, error) {
	work := w.works[args[0]+"/"+args[1]+" "+args[2]]
	if work == nil {
		return "nothing", nil
	}
	var out []string
	for _, path := range args[3:] {
		var node any
		if rest, ok := strings.CutPrefix(path, "work:"); ok {
			node = work.Annotations[rest]
		} else if err := utiljson.Unmarshal(work.Spec.Workload.Manifests[0].Raw, &node); err != nil {
			return "", err
		} else {
			node = resolve(node, path)
		}
		text, err := json.Marshal(node)
		if s, ok := node.(string); ok {
			text = []byte(strings.TrimRight(s, "\n"))
		}
		if err != nil {
			return "", err
		}
		out = append(out, path+": "+strings.ReplaceAll(string(text), "\n", "\n  "))
	}
	return strings.Join(out, "\n"), nil
}

func resolve(node any, path string) any {
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		part = strings.ReplaceAll(part, "~1", "/")
		switch parent := node.(type) {
		case map[string]any:
			node = parent[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(parent) {
				return nil
			}
			node = parent[i]
		default:
			return nil
		}
	}
	return node
}

// status Kind ns/name: the template's status and the binding's conditions.
func (w *world) status(args []string) (string, error) {
	k := args[0] + " " + args[1]
	template, b := w.templates[k], w.bindings[k]
	var out []string
	if template != nil && template.Object["status"] != nil {
		text, err := json.Marshal(template.Object["status"])
		if err != nil {
			return "", err
		}
		out = append(out, "template: "+string(text))
	}
	if b == nil {
		return strings.Join(append(out, "no binding"), "\n"), nil
	}
	for _, c := range b.BindingStatus().Conditions {
		out = append(out, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	for _, item := range b.BindingStatus().AggregatedStatus {
		text := "no status"
		if item.Status != nil {
			text = string(item.Status.Raw)
		}
		out = append(out, fmt.Sprintf("%s: applied=%t %s %s%s", item.ClusterName, item.Applied, item.Health, text, suffix(item.AppliedMessage)))
	}
	return strings.Join(out, "\n"), nil
}

func suffix(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

// rollup: the line that a commit shows.
func (w *world) rollup([]string) (string, error) {
	var parts []rollup.Part
	for _, k := range slices.Sorted(maps.Keys(w.templates)) {
		var b workv1alpha2.Binding
		if have, ok := w.bindings[k]; ok {
			b = have
		}
		parts = append(parts, rollup.PartOf(w.templates[k], b, w.worksOf(k), nil))
	}
	r := rollup.Revision(parts)
	return r.State + ": " + r.Description, nil
}

// explain Kind ns/name: why clusters do not fit, and how those that do compare.
func (w *world) explain(args []string) (string, error) {
	b := w.bindings[args[0]+" "+args[1]]
	if b == nil {
		return "no binding", nil
	}
	w.occupy()
	trace := placement.Explain(placement.RequestOf(b, placement.PeersOf(b, values(w.bindings))), placement.NewSnapshot(values(w.clusters)), placement.Options{})
	return explanation(trace), nil
}

// why Kind ns/name: the claim on the template.
func (w *world) why(args []string) (string, error) {
	t := w.templates[args[0]+" "+args[1]]
	claim := map[string]string{}
	carry(claim, t.GetLabels())
	carry(claim, t.GetAnnotations())
	if len(claim) == 0 {
		return "not claimed", nil
	}
	return sortedPairs(claim), nil
}
