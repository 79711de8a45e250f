package situation

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// APIVersion is the version of a Fleet for scripts. Fields may be added; none
// changes its meaning.
const APIVersion = "cli.flotilla.io/v1alpha1"

// State of an object.
type State string

// States, best first.
const (
	// Ready means that the object is as it should be.
	Ready State = "Ready"
	// Suspended means that a user has suspended it.
	Suspended State = "Suspended"
	// Progressing means that it may become ready without intervention.
	Progressing State = "Progressing"
	// Unknown means that its cluster does not answer.
	Unknown State = "Unknown"
	// Failed means that a user has to act.
	Failed State = "Failed"
)

// word returns the state as the status of a condition Ready, for tables.
func (s State) word() string {
	switch s {
	case Ready:
		return "True"
	case Suspended:
		return "suspended"
	case Progressing, Unknown:
		return "Unknown"
	default:
		return "False"
	}
}

// Fleet is the state of a fleet.
type Fleet struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"` // FleetStatus
	// Namespace is the only namespace that is reported; empty means all.
	Namespace string `json:"namespace,omitempty"`
	// Ready is true if there is no problem and everything could be read; for a single
	// namespace, everything but the clusters.
	Ready          bool            `json:"ready"`
	Sources        []Source        `json:"sources"`
	Kustomizations []Kustomization `json:"kustomizations"`
	Clusters       []Cluster       `json:"clusters"`
	// Templates counts the templates that policies propagate.
	Templates Count `json:"templates"`
	// Problems are ordered: failed before progressing, and possible causes before
	// their consequences.
	Problems []Problem `json:"problems"`
	// Notes are about objects that have no effect, or less than they ask for, as after a
	// typo. They do not count as problems.
	Notes     []Note `json:"notes,omitempty"`
	uncarried bool   // some workloads are carried by no policy
	// Unread names the kinds that the caller may not read, and of which nothing is shown.
	Unread []string `json:"unread,omitempty"`
}

// Unjudged returns the kinds of Unread without which it is not known whether all is ready. For a
// single namespace these are not the clusters, because bindings show what clusters reported.
func (f Fleet) Unjudged() []string {
	if f.Namespace == "" {
		return f.Unread
	}
	return slices.DeleteFunc(slices.Clone(f.Unread), func(what string) bool { return what == Clusters })
}

// nothing reports whether there are no sources, Kustomizations and templates.
func (f Fleet) nothing() bool { return len(f.Sources)+len(f.Kustomizations)+f.Templates.Total == 0 }

// Count is how many of something there are, and how many of them are ready.
type Count struct {
	Total int `json:"total"`
	Ready int `json:"ready"`
	// Unknown are those in a cluster that has stopped to answer.
	Unknown int `json:"unknown,omitempty"`
	// Suspended are those that are healthy while their dispatching is suspended: an older
	// version may run.
	Suspended int `json:"suspended,omitempty"`
	// Leaving are the templates of a cluster that are placed elsewhere, while their old copy is still there.
	// They are not in Total.
	Leaving int `json:"leaving,omitempty"`
	// Finished are the templates of a cluster that have come to their end there. They are in Total, and leave no
	// cluster that is drained.
	Finished int `json:"finished,omitempty"`
}

// Source is what Kustomizations apply.
type Source struct {
	// Kind is such as GitRepository.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	URL       string `json:"url"` // without user and password
	// Revision is the artifact's; empty if there is none yet.
	Revision string `json:"revision,omitempty"`
	// Fetched is when the artifact was made; nil if there is none.
	Fetched *metav1.Time `json:"fetched,omitempty"`
	State   State        `json:"state"`
	Message string       `json:"message,omitempty"`
}

// Kustomization is a Kustomization that applies a source.
type Kustomization struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Source is "GitRepository/name", with the namespace if that is another one.
	Source string `json:"source"`
	Path   string `json:"path"`
	// Revision is the one that was applied last; empty if none was.
	Revision string `json:"revision,omitempty"`
	State    State  `json:"state"`
	Message  string `json:"message,omitempty"`
	// Objects is how many objects it owns on the control plane, or in the cluster of the Secret Outside, which is not of the fleet.
	Objects int    `json:"objects"`
	Outside string `json:"outside,omitempty"`
	// Clusters counts the clusters in which its templates run; a cluster is ready
	// if all of them are ready there.
	Clusters Count `json:"clusters"`
}

// Cluster is a member.
type Cluster struct {
	Name     string `json:"name"`
	State    State  `json:"state"`
	Reason   string `json:"reason,omitempty"`
	Message  string `json:"message,omitempty"`
	Version  string `json:"version,omitempty"`
	Mode     string `json:"mode"`
	Provider string `json:"provider,omitempty"`
	Region   string `json:"region,omitempty"`
	closed
	// Taints are the other taints that its operators set, as "key=value:Effect".
	Taints []string `json:"taints,omitempty"`
	// Leaving is true while the cluster is being removed from the fleet.
	Leaving bool `json:"leaving,omitempty"`
	// Nodes is nil if their number is not known.
	Nodes *Count `json:"nodes,omitempty"`
	// Heard is when the agent of a cluster in pull mode last reported; nil if it
	// never did, and in push mode.
	Heard *metav1.Time `json:"heard,omitempty"`
	// Templates counts the templates that are placed there.
	Templates Count `json:"templates"`
	// CPU and Memory are what is allocated of what is allocatable, such as "3/8";
	// empty if that is not known.
	CPU    string `json:"cpu,omitempty"`
	Memory string `json:"memory,omitempty"`
}

// Problem is something that is not ready, and the next step.
type Problem struct {
	State State `json:"state"`
	// Group, Kind, Namespace and Name identify the object. Group is set for templates only;
	// it is empty for the core group, and for kinds that the control plane reconciles itself.
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Clusters that it concerns, sorted; none if it concerns the control plane.
	Clusters []string `json:"clusters,omitempty"`
	Message  string   `json:"message"`
	// Symptom is the cause that Pods in one of the clusters show, such as "ErrImagePull: …";
	// empty if they were not read, or show none.
	Symptom string `json:"symptom,omitempty"`
	// Next is the next step: what to do, or where to look.
	Next string `json:"next"`
}

// Object returns the kind and name, as in "Deployment shop/web".
func (p Problem) Object() string {
	if p.Namespace == "" {
		return p.Title() + " " + p.Name
	}
	return p.Title() + " " + p.Namespace + "/" + p.Name
}

// native has, by kind, the groups of Kubernetes' own kinds whose names other projects use as well.
var native = map[string]string{
	"CronJob": "batch", "DaemonSet": "apps", "Deployment": "apps", "Ingress": "networking.k8s.io", "Job": "batch", "NetworkPolicy": "networking.k8s.io",
	"Node": "", "Pod": "", "Secret": "", "Service": "", "StatefulSet": "apps",
}

// Title returns the kind, with its group if Kubernetes has a kind of that name itself, as in
// "Job.batch.volcano.sh".
func (p Problem) Title() string {
	if group, known := native[p.Kind]; known && p.Group != "" && p.Group != group {
		return p.Kind + "." + p.Group
	}
	return p.Kind
}

// closed says what a cluster does not take because a user has said so.
type closed struct {
	// Cordoned is true if nothing new is placed there.
	Cordoned bool `json:"cordoned,omitempty"`
	// Drained is true if what runs there is to leave, too.
	Drained bool `json:"drained,omitempty"`
	// emptying is true while something is still being removed there.
	emptying bool
}
