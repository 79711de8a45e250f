package comparison

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/flotilla-io/flotilla/policies/explain/change"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/running"
)

// pods is what becomes of the pods of one object in one cluster. The zero value is for what runs none.
type pods struct {
	effect Effect
	why    string
	// count is how many there are before; nil where that is not known.
	count *int64
}

// restart adds what becomes of pods in a cluster.
func (d *differ) restart(cluster string, p *pods) {
	if p.effect == "" {
		return
	}
	key := d.id.String() + "\x00" + string(p.effect) + "\x00" + p.why + "\x00" + fmt.Sprint(p.count == nil)
	r := d.restarts[key]
	if r == nil {
		r = &Restart{Object: d.object, Effect: p.effect, Why: p.why}
		d.restarts[key] = r
	}
	r.Clusters = append(r.Clusters, cluster)
	if p.count != nil {
		r.Pods = ptr.To(ptr.Deref(r.Pods, 0) + *p.count)
	}
}

// native are what Kubernetes' own kinds do when their pod template changes.
var native = map[schema.GroupKind]func(before, after map[string]any) (Effect, string){
	{Group: "apps", Kind: "Deployment"}:  rolls,
	{Group: "apps", Kind: "StatefulSet"}: rolls,
	{Group: "apps", Kind: "DaemonSet"}:   rolls,
	{Group: "apps", Kind: "ReplicaSet"}: func(_, _ map[string]any) (Effect, string) {
		return Stays, "pods that a ReplicaSet has made stay as they are"
	},
	{Kind: "ReplicationController"}: func(_, _ map[string]any) (Effect, string) {
		return Stays, "pods that a ReplicationController has made stay as they are"
	},
	{Group: "batch", Kind: "Job"}: func(_, _ map[string]any) (Effect, string) {
		return Refused, "the pod template of a Job cannot be changed: give the Job another name"
	},
	{Group: "batch", Kind: "CronJob"}: func(_, _ map[string]any) (Effect, string) { return Stays, "its next run has the new pod template" },
}

// rolls is for kinds whose controller replaces pods.
func rolls(_, after map[string]any) (Effect, string) {
	if paused, _, _ := unstructured.NestedBool(after, "spec", "paused"); paused {
		return Stays, "its pod template changes, and it is paused"
	}
	for _, field := range []string{"updateStrategy", "strategy"} {
		if kind, _, _ := unstructured.NestedString(after, "spec", field, "type"); kind == "OnDelete" {
			return Stays, "its pod template changes, and it replaces pods only as they are deleted"
		}
	}
	return Restarts, "its pod template changes"
}

// templatePath is where an object has its pod template; nil for a Pod, and for what has none.
func templatePath(kind schema.GroupKind) []string {
	if kind == (schema.GroupKind{Group: "batch", Kind: "CronJob"}) {
		return []string{"spec", "jobTemplate", "spec", "template"}
	}
	return []string{"spec", "template"}
}

// podsOf returns what becomes of the pods of an object that changes.
func podsOf(before, after *unstructured.Unstructured, rules *interpreter.Interpreter) pods {
	kind := after.GroupVersionKind().GroupKind()
	if kind == (schema.GroupKind{Kind: "Pod"}) {
		return podItself(before, after)
	}
	if running.Of(kind) != running.Runs {
		return pods{}
	}
	out := pods{count: replicasOf(before, kind, rules)}
	was, is := nested(before.Object, templatePath(kind)), nested(after.Object, templatePath(kind))
	effect, known := native[kind]
	switch {
	case !known && was == nil && is == nil:
		out.effect, out.why = Uncertain, "what its controller makes of the change is not known here"
	case reflect.DeepEqual(was, is):
		out.effect, out.why = Stays, "its pod template stays the same"
		if !known && !onlySize(before, after) {
			out.effect, out.why = Uncertain, "its pod template stays the same; what its controller makes of the rest is not known here"
		}
	case known:
		out.effect, out.why = effect(before.Object, after.Object)
	default:
		out.effect, out.why = Restarts, "its pod template changes"
	}
	if out.effect == Restarts {
		out.why += whichOf(was, is)
	}
	return out
}

// podItself is for a Pod: a new image restarts its container, and most else is refused.
func podItself(before, after *unstructured.Unstructured) pods {
	out := pods{effect: Stays, why: "its spec stays the same", count: ptr.To(int64(1))}
	for _, f := range change.All(before.Object["spec"], after.Object["spec"]) {
		switch {
		case strings.HasSuffix(f.Path, "/image"):
			if out.effect == Stays {
				out.effect, out.why = Restarts, "a container with another image is restarted"
			}
		case strings.HasPrefix(f.Path, "/tolerations"), f.Path == "/activeDeadlineSeconds", f.Path == "/terminationGracePeriodSeconds":
		default:
			out.effect, out.why = Refused, "spec"+strings.ReplaceAll(f.Path, "/", ".")+" of a Pod cannot be changed: give the Pod another name"
		}
	}
	return out
}

// onlySize reports whether objects differ in nothing of their spec but the number of replicas.
func onlySize(before, after *unstructured.Unstructured) bool {
	changed := change.All(before.Object["spec"], after.Object["spec"])
	return !slices.ContainsFunc(changed, func(f change.Change) bool { return f.Path != "/replicas" })
}

// replicasOf returns how many pods an object asks for; nil where its kind does not say.
func replicasOf(obj *unstructured.Unstructured, kind schema.GroupKind, rules *interpreter.Interpreter) *int64 {
	if rules == nil || kind.Kind == "DaemonSet" || kind.Kind == "CronJob" {
		return nil
	}
	if parts, known, err := rules.Components(obj); known && err == nil && len(parts) > 0 {
		var sum int64
		for _, p := range parts {
			sum += int64(p.Replicas)
		}
		return &sum
	}
	if n, _, known, err := rules.Replicas(obj); known && err == nil {
		return ptr.To(int64(n))
	}
	return nil
}

// whichOf names the images that change, of at most one container, or the first field.
func whichOf(was, is any) string {
	const most = 3
	var names []string
	all := change.All(was, is)
	for i := range all {
		if len(names) == most {
			names = append(names, "…")
			break
		}
		names = append(names, strings.ReplaceAll(strings.TrimPrefix(all[i].Path, "/"), "/", "."))
	}
	if len(names) == 0 {
		return ""
	}
	return ": " + strings.Join(names, ", ")
}

// nested returns the value at a path; nil where there is none.
func nested(obj map[string]any, path []string) any {
	value, _, err := unstructured.NestedFieldNoCopy(obj, path...)
	if err != nil {
		return nil
	}
	return value
}
