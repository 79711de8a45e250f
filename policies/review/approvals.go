package review

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/codeowners"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
)

// Approval is one that changes in some clusters and namespaces need.
type Approval struct {
	gitopsv1alpha1.ReviewApproval
	selector labels.Selector // nil for none
}

// Approvals returns approvals that can be asked for. Its error names the one whose clusters cannot be selected.
func Approvals(of []gitopsv1alpha1.ReviewApproval) ([]Approval, error) {
	out := make([]Approval, 0, len(of))
	for i, one := range of {
		a := Approval{ReviewApproval: one}
		if one.Clusters != nil && one.Clusters.LabelSelector != nil {
			selector, err := metav1.LabelSelectorAsSelector(one.Clusters.LabelSelector)
			if err != nil {
				return nil, fmt.Errorf("spec.approvals[%d].clusters.labelSelector of %s: %w", i, one.Name, err)
			}
			a.selector = selector
		}
		out = append(out, a)
	}
	return out, nil
}

// Edits are the files of a change.
type Edits struct {
	// Owners are those whom the files belong to.
	Owners []Owned
	// All says that all approvals are needed: what reviews ask for may be among the files, or what nobody can compare.
	All bool
}

// Needed returns the approvals that a change needs, in their order: those into whose clusters and namespaces it reaches, and all for one
// that may do away with them. Clusters are labels by the names of clusters.
func Needed(of []Approval, c comparison.Comparison, clusters map[string]map[string]string, edits Edits) []gitopsv1alpha1.NeededApproval {
	var out []gitopsv1alpha1.NeededApproval
	for _, a := range of {
		if !edits.All && !a.concerns(c, clusters) {
			continue
		}
		count := max(a.Count, 1)
		if !a.By.CodeOwners {
			out = append(out, gitopsv1alpha1.NeededApproval{Name: a.Name, Users: a.By.Users, Teams: a.By.Teams, Count: count})
			continue
		}
		for _, owned := range edits.Owners {
			need := gitopsv1alpha1.NeededApproval{Name: a.Name, File: owned.File, Users: owned.Users, Teams: owned.Teams, Count: count}
			if len(owned.Users)+len(owned.Teams) == 0 {
				need.Users, need.Teams = a.By.Users, a.By.Teams
			}
			out = append(out, need)
		}
	}
	return out
}

// MostNeeded is how many approvals a change may need.
const MostNeeded = 100

// Owned are the owners of a file of a change, of several files with the same ones of the first.
type Owned struct {
	File         string
	Users, Teams []string
}

// untold are the risks of changes of which a comparison does not say what they do in the end: what is refused for now may not be later.
var untold = []string{comparison.RiskNotFollowed, comparison.RiskBuild, comparison.RiskShared, comparison.RiskDependency, comparison.RiskNotTaken}

// concerns reports whether a change does something where an approval is needed. What is not told may be anything.
func (a Approval) concerns(c comparison.Comparison, clusters map[string]map[string]string) bool {
	for _, r := range c.Risks {
		if slices.Contains(untold, r.Reason) {
			return true
		}
	}
	reaches := func(o comparison.Object, names ...string) bool {
		return a.hasNamespace(o) && slices.ContainsFunc(names, func(name string) bool { return a.hasCluster(name, clusters[name]) })
	}
	for _, change := range c.Changes {
		if reaches(change.Object, change.Clusters...) {
			return true
		}
	}
	for _, placement := range c.Placements {
		for _, shift := range placement.Shifts {
			if reaches(placement.Object, shift.Cluster) {
				return true
			}
		}
	}
	return slices.ContainsFunc(c.Held, func(h comparison.Held) bool { return reaches(h.Object, h.Clusters...) })
}

func (a Approval) hasCluster(name string, of map[string]string) bool {
	return a.Clusters == nil || slices.Contains(a.Clusters.Names, name) || a.selector != nil && a.selector.Matches(labels.Set(of))
}

func (a Approval) hasNamespace(o comparison.Object) bool {
	namespace := o.Namespace
	if o.Kind == "Namespace" && o.APIVersion == "v1" {
		namespace = o.Name
	}
	return len(a.Namespaces) == 0 || namespace == "" || slices.Contains(a.Namespaces, namespace)
}

// OfOwners returns who owns files of a change, those with the same owners once, by the first of them.
func OfOwners(file codeowners.File, paths []string) []Owned {
	var out []Owned
	seen := map[string]bool{}
	for _, path := range paths {
		owners := file.Of(path)
		key := strings.Join(owners.Users, " ") + "\n" + strings.Join(owners.Teams, " ")
		if !seen[key] {
			seen[key] = true
			out = append(out, Owned{File: path, Users: owners.Users, Teams: owners.Teams})
		}
	}
	return out
}

// Approver is somebody who approves of a head.
type Approver struct {
	Login string
	// Teams are those that were asked for, and that somebody is in.
	Teams []string
}

// Give returns needed approvals with who gave them. Nobody approves of what is his own.
func Give(needed []gitopsv1alpha1.NeededApproval, author string, by []Approver) []gitopsv1alpha1.NeededApproval {
	out := slices.Clone(needed)
	for i := range out {
		out[i].By = nil
		for _, who := range by {
			if !strings.EqualFold(who.Login, author) && can(out[i], who) {
				out[i].By = append(out[i].By, who.Login)
			}
		}
		slices.Sort(out[i].By)
	}
	return out
}

func can(need gitopsv1alpha1.NeededApproval, who Approver) bool {
	return contains(need.Users, who.Login) || slices.ContainsFunc(need.Teams, func(team string) bool { return contains(who.Teams, team) })
}

// contains compares as forges do, which take no notice of case.
func contains(names []string, name string) bool {
	return slices.ContainsFunc(names, func(one string) bool { return strings.EqualFold(one, name) })
}

// Missing returns the approvals that nobody has given yet, or too few.
func Missing(needed []gitopsv1alpha1.NeededApproval) []gitopsv1alpha1.NeededApproval {
	return slices.DeleteFunc(slices.Clone(needed), func(n gitopsv1alpha1.NeededApproval) bool { return len(n.By) >= int(max(n.Count, 1)) })
}

// Awaited is what a pull request is told for as long as approvals are missing, in one line. Outcome is what its merge does.
func Awaited(missing []gitopsv1alpha1.NeededApproval, outcome string) string {
	return oneLine(awaited(missing) + "; " + outcome)
}

func awaited(missing []gitopsv1alpha1.NeededApproval) string {
	text := "awaits " + missing[0].Name + ": " + whom(missing[0])
	if more := len(missing) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// mostNames is how many people and teams a line names.
const mostNames = 3

// whom says by whom an approval can be given, and how many more of them are awaited.
func whom(need gitopsv1alpha1.NeededApproval) string {
	var names []string
	for _, user := range need.Users {
		if !contains(need.By, user) {
			names = append(names, user)
		}
	}
	for _, team := range need.Teams {
		if contains(need.Users, team) {
			continue // GitLab writes both alike
		}
		names = append(names, "team "+team)
	}
	text := strings.Join(names[:min(len(names), mostNames)], ", ")
	if more := len(names) - mostNames; more > 0 {
		text += " or others"
	} else if i := strings.LastIndex(text, ", "); i >= 0 {
		text = text[:i] + " or " + text[i+len(", "):]
	}
	if len(names) == 0 {
		text = "nobody can give it"
	}
	if left := int(need.Count) - len(need.By); left > 1 {
		text = fmt.Sprintf("%d of %s", left, text)
	}
	if need.File != "" {
		text += " for " + need.File
	}
	return text
}
