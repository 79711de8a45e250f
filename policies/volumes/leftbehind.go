package volumes

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// LeftBehind says what becomes of the data of a template when it leaves clusters: "it takes no data along: the
// PersistentVolumeClaims data-db-* stay in west, …", and what it goes on with elsewhere. there are the claims that the clusters have that
// it goes to, as far as that is known. It is for moves that are to come as for those that were made. Empty where it has no
// claims, and for a template that is nil: it is not known.
func LeftBehind(template *unstructured.Unstructured, from []string, there Found) string {
	stays := Stay(template, from)
	if stays == "" {
		return ""
	}
	if again := there.again(template); again != "" {
		return "it takes no data along: " + stays + "; " + again + ", without what was written in " + inAll(from) + " since"
	}
	return "it takes no data along: " + stays + ", and " + begins(template)
}

// Stay says only which claims a template leaves in clusters, and that they stay, or go with its copies: "the
// PersistentVolumeClaims data-db-* stay in west". Empty where LeftBehind is.
func Stay(template *unstructured.Unstructured, from []string) string {
	if template == nil || len(from) == 0 {
		return ""
	}
	in := inAll(from)
	if isClaim(template) {
		if Named(template) {
			return "it goes with its copy in " + in
		}
		return "it stays in " + in
	}
	made, mounted := made(template), mounted(template)
	var parts []string
	if len(made) > 0 {
		becomes := " stay in "
		if Named(template) && slices.Contains(Drops(template), whens()[0]) {
			becomes = " go with the copy in "
		}
		parts = append(parts, "the PersistentVolumeClaims "+strings.Join(made, ", ")+becomes+in)
	}
	switch len(mounted) {
	case 0:
	case 1:
		parts = append(parts, "the PersistentVolumeClaim "+mounted[0]+" stays in "+in)
	default:
		parts = append(parts, "the PersistentVolumeClaims "+strings.Join(mounted, ", ")+" stay in "+in)
	}
	return strings.Join(parts, ", and ")
}

func inAll(clusters []string) string {
	return strings.Join(slices.Sorted(slices.Values(clusters)), ", ")
}

// begins says what a template that takes no data along begins with, where it is not known what is there: clusters do not report the
// claims that a StatefulSet has made before, and those that it is not asked for may be older than what they report.
func begins(template *unstructured.Unstructured) string {
	switch {
	case isClaim(template):
		return "elsewhere the one that is there is used, else an empty one is made"
	case len(mounted(template)) > 0:
		return "elsewhere it mounts others of that name"
	default:
		return "elsewhere it goes on with those that are there, else with empty ones"
	}
}

// Concern reports whether objects of a kind may have claims, so that what they leave behind depends on the template.
func Concern(of schema.GroupKind) bool {
	switch of.Group {
	case "":
		return of.Kind == "Pod" || of == claims()
	case "apps", "batch", "apps.kruise.io":
		return true
	default:
		return of == schema.GroupKind{Group: "argoproj.io", Kind: "Rollout"}
	}
}

func claims() schema.GroupKind { return schema.GroupKind{Kind: "PersistentVolumeClaim"} }

func isClaim(template *unstructured.Unstructured) bool {
	return template.GroupVersionKind().GroupKind() == claims()
}

// made are the claims that a template makes for its replicas: "data-db-*".
func made(template *unstructured.Unstructured) []string {
	if !MakesClaims(template.GroupVersionKind().GroupKind()) {
		return nil
	}
	names := madeNames(template)
	for i := range names {
		names[i] += "-*"
	}
	return names
}

// mounted are the claims that the Pods of a template name, sorted.
func mounted(template *unstructured.Unstructured) []string {
	if !Concern(template.GroupVersionKind().GroupKind()) {
		return nil
	}
	path := []string{"spec", "template", "spec", "volumes"}
	switch template.GetKind() {
	case "Pod":
		path = []string{"spec", "volumes"}
	case "CronJob":
		path = []string{"spec", "jobTemplate", "spec", "template", "spec", "volumes"}
	}
	var names []string
	for _, volume := range rules.Objects(template.Object, path...) {
		if name := rules.Text(volume, "persistentVolumeClaim", "claimName"); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
