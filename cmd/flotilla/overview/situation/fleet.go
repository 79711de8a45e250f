package situation

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// APIVersion is that of a Fleet for scripts. Fields may be added; none changes
// its meaning.
const APIVersion = "cli.flotilla.io/v1alpha1"

// State of an object.
type State string

// States, best first.
const (
	// Ready means that it is as it should be.
	Ready State = "Ready"
	// Suspended means that somebody asked the fleet to leave it alone.
	Suspended State = "Suspended"
	// Progressing means that it may become ready by itself.
	Progressing State = "Progressing"
	// Unknown means that nothing is heard of its cluster.
	Unknown State = "Unknown"
	// Failed means that somebody has to act.
	Failed State = "Failed"
)

// word is how tables show a state: as the condition Ready does.
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
	// Namespace is the only one that this is about; empty for all.
	Namespace string `json:"namespace,omitempty"`
	// Ready says that there is no problem, and that all could be read; of one namespace,
	// all but the clusters.
	Ready          bool            `json:"ready"`
	Sources        []Source        `json:"sources"`
	Kustomizations []Kustomization `json:"kustomizations"`
	Clusters       []Cluster       `json:"clusters"`
	// Templates counts what policies propagate.
	Templates Count `json:"templates"`
	// Problems are ordered: failed before progressing, and what may be the reason
	// of others first.
	Problems []Problem `json:"problems"`
	// Notes are about what does nothing, or not all that its words say: a typo looks like
	// that. They do not count as problems.
	Notes []Note `json:"notes,omitempty"`
	// Unread names what the caller may not read, so that nothing is shown of it.
	Unread []string `json:"unread,omitempty"`
}

// Unjudged is what of Unread keeps anybody from saying that all is ready: of one namespace
// the bindings show what clusters reported, whether the clusters may be read or not.
func (f Fleet) Unjudged() []string {
	if f.Namespace == "" {
		return f.Unread
	}
	return slices.DeleteFunc(slices.Clone(f.Unread), func(what string) bool { return what == Clusters })
}

// nothing reports whether there is no source, Kustomization or template.
func (f Fleet) nothing() bool { return len(f.Sources)+len(f.Kustomizations)+f.Templates.Total == 0 }

// Count says how many of something there are, and how many are ready.
type Count struct {
	Total int `json:"total"`
	Ready int `json:"ready"`
	// Unknown are those that were in a cluster of which nothing is heard any more.
	Unknown int `json:"unknown,omitempty"`
	// Suspended are those that are well, and that changes are kept from: an older version
	// may run there.
	Suspended int `json:"suspended,omitempty"`
	// Leaving are, of templates in a cluster, those that are placed elsewhere by now, and whose old copy is there still.
	// They are not in Total.
	Leaving int `json:"leaving,omitempty"`
}

// Source is a GitRepository.
type Source struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	URL       string `json:"url"` // without user and password
	// Revision is that of the artifact; empty where there is none yet.
	Revision string `json:"revision,omitempty"`
	// Fetched is when the artifact was made; nil where there is none.
	Fetched *metav1.Time `json:"fetched,omitempty"`
	State   State        `json:"state"`
	Message string       `json:"message,omitempty"`
}

// Kustomization is one that applies a source.
type Kustomization struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Source is "GitRepository/name", with the namespace where it is another.
	Source string `json:"source"`
	Path   string `json:"path"`
	// Revision is the last that was applied; empty for none.
	Revision string `json:"revision,omitempty"`
	State    State  `json:"state"`
	Message  string `json:"message,omitempty"`
	// Objects is how many it owns on the control plane.
	Objects int `json:"objects"`
	// Clusters counts those that its templates run in: ready are the ones in
	// which all of them are.
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
	// Taints that its operators gave it besides, as "key=value:Effect".
	Taints []string `json:"taints,omitempty"`
	// Leaving says that it is being taken out of the fleet.
	Leaving bool `json:"leaving,omitempty"`
	// Nodes is nil where their number is not known.
	Nodes *Count `json:"nodes,omitempty"`
	// Heard is when the agent of a cluster in pull mode last reported; nil for
	// never, and in push mode.
	Heard *metav1.Time `json:"heard,omitempty"`
	// Templates counts what is placed there.
	Templates Count `json:"templates"`
	// CPU and Memory are what is taken of what there is, such as "3/8"; empty
	// where it is not known.
	CPU    string `json:"cpu,omitempty"`
	Memory string `json:"memory,omitempty"`
}

// Problem is something that is not ready, and the next step.
type Problem struct {
	State State `json:"state"`
	// Group, Kind, Namespace and Name are of the object. Group is that of a template; empty
	// for the core one, and for kinds on which the control plane acts itself.
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Clusters that it concerns, sorted; none where it concerns the control plane.
	Clusters []string `json:"clusters,omitempty"`
	Message  string   `json:"message"`
	// Symptom is what the Pods of one of the clusters show of it, such as "ErrImagePull: …";
	// empty where nobody asked them, or they showed nothing.
	Symptom string `json:"symptom,omitempty"`
	// Next is what to do, or where to look.
	Next string `json:"next"`
}

// Object is "Deployment shop/web".
func (p Problem) Object() string {
	if p.Namespace == "" {
		return p.Title() + " " + p.Name
	}
	return p.Title() + " " + p.Namespace + "/" + p.Name
}

// native are the groups of kinds of Kubernetes whose names others use as well.
var native = map[string]string{
	"CronJob": "batch", "DaemonSet": "apps", "Deployment": "apps", "Ingress": "networking.k8s.io", "Job": "batch", "NetworkPolicy": "networking.k8s.io",
	"Node": "", "Pod": "", "Secret": "", "Service": "", "StatefulSet": "apps",
}

// Title is the kind, with the group where it bears the name of one of Kubernetes' own:
// "Job.batch.volcano.sh".
func (p Problem) Title() string {
	if group, known := native[p.Kind]; known && p.Group != "" && p.Group != group {
		return p.Kind + "." + p.Group
	}
	return p.Kind
}

// closed says what somebody has a cluster keep away.
type closed struct {
	// Cordoned says that nothing new is placed there.
	Cordoned bool `json:"cordoned,omitempty"`
	// Drained says that what runs there is to go, too.
	Drained bool `json:"drained,omitempty"`
}
