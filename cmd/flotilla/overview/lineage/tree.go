package lineage

import (
	"fmt"
	"io"
	"strings"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// Node is an object with the objects below it.
type Node struct {
	Object
	// State is empty if the object has none of its own.
	State situation.State `json:"state,omitempty"`
	// Text is for example "3/3 clusters", or what is wrong.
	Text     string `json:"text,omitempty"`
	Children []Node `json:"children,omitempty"`
}

// TreeOptions change what is drawn.
type TreeOptions struct {
	// ASCII draws without box characters.
	ASCII bool
}

// strokes draw the branches.
type strokes struct{ branch, last, down, blank string }

// Draw writes the tree.
func (n Node) Draw(w io.Writer, opts TreeOptions) error {
	s := strokes{branch: "├── ", last: "└── ", down: "│   ", blank: "    "}
	if opts.ASCII {
		s = strokes{branch: "|-- ", last: "`-- ", down: "|   ", blank: "    "}
	}
	var out strings.Builder
	out.WriteString(n.label() + "\n")
	n.below(&out, s, "")
	_, err := io.WriteString(w, out.String())
	return err
}

func (n Node) below(out *strings.Builder, s strokes, indent string) {
	for i, child := range n.Children {
		branch, down := s.branch, s.down
		if i == len(n.Children)-1 {
			branch, down = s.last, s.blank
		}
		fmt.Fprintf(out, "%s%s%s\n", indent, branch, child.label())
		child.below(out, s, indent+down)
	}
}

// label returns "Deployment/shop/web  2/3 clusters", with the cluster before it for an object in a
// member.
func (n Node) label() string {
	label := n.Kind + "/" + n.path()
	if n.Cluster != "" {
		label = n.Cluster + ": " + label
	}
	if n.State != "" {
		label += "  " + string(n.State)
	}
	if n.Text != "" {
		label += "  " + excerpt.Line(n.Text)
	}
	return label
}

// Compact returns the tree without bindings and Works, with members' objects directly below their
// template.
func (n Node) Compact() Node {
	out := n
	out.Children = nil
	for _, child := range n.Children {
		compact := child.Compact()
		switch child.Kind {
		case "ResourceBinding", "ClusterResourceBinding", "Work":
			out.Children = append(out.Children, compact.Children...)
		default:
			out.Children = append(out.Children, compact)
		}
	}
	return out
}
