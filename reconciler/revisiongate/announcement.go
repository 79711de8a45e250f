package revisiongate

import (
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// among is between what an announcement says of its revision and the names of those that are switched with it.
const among = " is written, here and in "

// mostNamed is how many Kustomizations are named. Others are waited for only by the run that finds that it exchanges objects with them.
const mostNamed = 100

// Announcement is the message of the condition Switching for a revision, built to objects of a digest, that counts at the same time
// as in the Kustomizations with, each as namespace/name. Other texts among these are for people only.
func Announcement(revision, digest string, with []string) string {
	text := fmt.Sprintf("Clusters keep what they have until all of revision %s (%s)", revision, digest)
	if len(with) == 0 {
		return text + " is written"
	}
	kind := "Kustomizations "
	if len(with) == 1 {
		kind = "Kustomization "
	}
	return text + among + kind + strings.Join(slices.Compact(slices.Clone(with[:min(len(with), mostNamed)])), ", ")
}

// Announced returns the revision of which a part is written, and clusters keep what they had until the rest is; empty for none, and
// where that is not known.
func Announced(conditions []metav1.Condition) string {
	if !HoldsAll(conditions) {
		return ""
	}
	_, rest, ok := strings.Cut(apimeta.FindStatusCondition(conditions, Condition).Message, " revision ")
	revision, _, known := strings.Cut(rest, " (")
	if !ok || !known {
		return ""
	}
	return revision
}

// Partners returns the Kustomizations that an announcement of a revision names, empty for any revision.
func Partners(text, revision string) []client.ObjectKey {
	of, names, ok := strings.Cut(text, among)
	if !ok || revision != "" && !strings.Contains(of, " revision "+revision+" (") {
		return nil
	}
	_, names, _ = strings.Cut(names, " ")
	var out []client.ObjectKey
	for name := range strings.SplitSeq(names, ", ") {
		if namespace, name, ok := strings.Cut(name, "/"); ok {
			out = append(out, client.ObjectKey{Namespace: namespace, Name: name})
		}
	}
	return out
}
