package build

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// document is one YAML document of a file.
type document struct {
	apiVersion, kind, name, namespace string
	node                              *yaml.Node
}

// documents checks a file and returns its documents, without empty ones.
func (i *inspection) documents(name string) ([]document, error) {
	i.files.sealed.Applied(trim(name))
	content, _ := i.files.read(name)
	if err := stored(i.files, name, content); err != nil {
		return nil, err
	}
	docs, err := i.parse(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", trim(name), err)
	}
	return docs, nil
}

// parse parses YAML, and counts its nodes against what the build may still have.
func (i *inspection) parse(content []byte) ([]document, error) {
	i.read += len(content)
	if err := i.fits(); err != nil {
		return nil, err
	}
	docs, nodes, err := parse(content, i.limits, i.limits.Nodes-i.nodes, i.ended)
	i.nodes += nodes
	if err := i.fits(); err != nil {
		return nil, err
	}
	return docs, err
}

// use counts a file that kustomize reads, each time that it does: a small file
// may be used a thousand times.
func (i *inspection) use(name string) error {
	content, _ := i.files.read(name)
	if i.bytes += len(content); i.bytes > i.limits.Bytes {
		return fmt.Errorf("%s: %w: the files that are used have more than %d bytes, counted as often as they are used", trim(name), ErrTooLarge, i.limits.Bytes)
	}
	return stored(i.files, name, content)
}

// pointer is how a file begins that Git LFS puts in the place of the one that it stores elsewhere.
const pointer = "version https://git-lfs.github.com/spec/"

// stored returns an error for a file whose content is not in the source, as what would be applied instead is its address,
// and for an encrypted one that cannot be opened. The first does not say that it is an ErrInvalid (%.0w): the file need not be a manifest.
func stored(files *memory, name string, content []byte) error {
	if err := files.sealed.Fault(trim(name)); err != nil {
		return err
	}
	if files.sealed.Torn(trim(name)) {
		return fmt.Errorf("%s: %w: it is encrypted, and used by a configMapGenerator, which takes it as it is, and by something for which it is decrypted: have a copy of it for one of them", trim(name), ErrRefused)
	}
	if bytes.HasPrefix(content, []byte(pointer)) {
		return fmt.Errorf("%s: %.0wGit LFS keeps its content elsewhere, and the commit has a pointer only; put the file itself into the commit (git lfs untrack, git add --renormalize), or annotate the GitRepository that it is of with %s: \"true\"; where that stands, see whether that could be fetched, and that the file is of no submodule", trim(name), ErrInvalid, gitopsv1alpha1.LFSAnnotation)
	}
	return nil
}

// make counts objects.
func (i *inspection) make(at string, objects int) error {
	if i.objects += objects; i.objects > i.limits.Objects {
		return fmt.Errorf("%s: %w: more than %d objects", at, ErrTooLarge, i.limits.Objects)
	}
	return i.fits()
}

// yamlFile checks a YAML file whose documents need not be objects.
func (i *inspection) yamlFile(name string) error {
	if err := i.use(name); err != nil {
		return err
	}
	if nodes, known := i.checked[name]; known {
		i.sayings += nodes
		return i.again(name, nodes)
	}
	docs, err := i.documents(name)
	i.checked[name] = i.count(docs)
	return err
}

// again counts the nodes of a file that is used once more.
func (i *inspection) again(name string, nodes int) error {
	if i.nodes += nodes; i.nodes > i.limits.Nodes {
		return fmt.Errorf("%s: %w", trim(name), tooManyNodes(i.limits))
	}
	return i.fits()
}

func tooManyNodes(limits Limits) error {
	return fmt.Errorf("%w: the files that are used have more than %d YAML nodes (keys, values and entries of lists), counted as often as they are used; build them in parts", ErrTooLarge, limits.Nodes)
}

// count adds up the YAML nodes of what kustomize is asked to change, and returns
// their number.
func (i *inspection) count(docs []document) int {
	nodes := 0
	for _, doc := range docs {
		nodes += size(doc.node)
	}
	i.sayings += nodes
	return nodes
}

// size returns the number of nodes below a node, including itself.
func size(node *yaml.Node) int {
	total := 1
	for _, sub := range node.Content {
		total += size(sub)
	}
	return total
}

// contained is how much a manifest contains.
type contained struct{ objects, nodes int }

// manifest checks a file whose documents are objects, and counts them.
func (i *inspection) manifest(name string) error {
	if err := i.use(name); err != nil {
		return err
	}
	if made, known := i.manifested[name]; known {
		// It is not certain that kustomize accepts a file that is used twice.
		i.plain.doubt = true
		if err := i.again(name, made.nodes); err != nil {
			return err
		}
		return i.make(trim(name), made.objects)
	}
	before, nodes := i.objects, 0
	docs, known := i.parsed[name]
	delete(i.parsed, name)
	if !known {
		var err error
		if docs, err = i.documents(name); err != nil {
			return err
		}
	}
	for n, doc := range docs {
		at := trim(name)
		if len(docs) > 1 {
			at += " (document " + strconv.Itoa(n+1) + ")"
		}
		items, err := doc.items()
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		for _, item := range items {
			if err := item.sound(); err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
			if err := i.make(at, 1); err != nil {
				return err
			}
			if err := i.place(item, name, at); err != nil {
				return err
			}
		}
		i.plain.object(doc)
		nodes += size(doc.node)
	}
	i.manifested[name] = contained{objects: i.objects - before, nodes: nodes}
	return nil
}

// place records where an object is. The same object twice in one file is always a
// mistake; in two files it may not be, where they are built separately.
func (i *inspection) place(item document, file, at string) error {
	id := item.kind + " " + item.name
	exact := strings.Join([]string{file, id, item.apiVersion, item.namespace}, "\x00")
	if first, twice := i.first[exact]; twice {
		return fmt.Errorf("%s: %w: it is in %s and in %s; remove one", id, ErrDuplicate, first, at)
	}
	i.first[exact] = at
	i.where[id] = append(i.where[id], at)
	return nil
}

// items returns the objects in a document: the document itself, or those of a
// list.
func (d document) items() ([]document, error) {
	if !strings.HasSuffix(d.kind, "List") {
		return []document{d}, nil
	}
	list := child(d.node, "items")
	if list == nil {
		return []document{d}, nil
	}
	if list.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("%w: the items of a %s are not a list", ErrInvalid, d.kind)
	}
	var out []document
	for _, item := range list.Content {
		out = append(out, newDocument(item))
	}
	return out, nil
}

// sound returns an error unless a document is an object.
func (d document) sound() error {
	switch {
	case d.node.Kind != yaml.MappingNode:
		return fmt.Errorf("%w: it is not a Kubernetes object; keep other YAML out of spec.path, or list it in .sourceignore", ErrInvalid)
	case d.apiVersion == "" || d.kind == "":
		return fmt.Errorf("%w: apiVersion or kind is missing; keep other YAML out of spec.path, or list it in .sourceignore", ErrInvalid)
	case d.name == "" && child(child(d.node, "metadata"), "generateName") != nil:
		return fmt.Errorf("%s: %w: generateName cannot be applied again; give it metadata.name", d.kind, ErrInvalid)
	case d.name == "":
		return fmt.Errorf("%s: %w: metadata.name is missing", d.kind, ErrInvalid)
	case strings.ContainsFunc(d.name, strange):
		return fmt.Errorf("%s %q: %w: the name holds characters that cannot be seen", d.kind, d.name, ErrInvalid)
	}
	return nil
}

// parse parses YAML without expanding it. It refuses what would be dangerous or
// ambiguous to expand, and more than left nodes; it returns how many there are.
// Between documents it calls ended, whose error stops it.
func parse(content []byte, limits Limits, left int, ended func() error) (out []document, nodes int, err error) {
	// A file may begin with a UTF-8 byte order mark.
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	if err := sizes(content, limits.Document); err != nil {
		return nil, 0, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		if ended != nil && ended() != nil {
			return nil, nodes, ended()
		}
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			return out, nodes, nil
		}
		if err != nil {
			return nil, nodes, fmt.Errorf("%w: %s", ErrInvalid, oneLine(unnamed.ReplaceAllString(strings.TrimPrefix(err.Error(), "yaml: "), noAnchor)))
		}
		if len(root.Content) == 0 || root.Content[0].Tag == "!!null" {
			continue
		}
		c := checker{limits: limits, cost: map[*yaml.Node]int{}, open: map[*yaml.Node]bool{}}
		if _, err := c.node(root.Content[0], 0); err != nil {
			return nil, nodes, err
		}
		if nodes += size(root.Content[0]); nodes > left {
			return nil, nodes, tooManyNodes(limits)
		}
		if len(out) == limits.Objects {
			return nil, nodes, fmt.Errorf("%w: more than %d documents", ErrTooLarge, limits.Objects)
		}
		out = append(out, newDocument(root.Content[0]))
	}
}

// unnamed matches an error about an alias without an anchor, which may be a
// password that begins with a star: it must not be shown.
var unnamed = regexp.MustCompile(`(?s)unknown anchor '.*' referenced`)

const noAnchor = "an alias, which begins with *, of an anchor that is not there: put it in quotes if it is a text"

var separator = regexp.MustCompile(`(?m)^---(?:\s|$)`)

// sizes refuses documents above the limit, by the distance between separators,
// without parsing them.
func sizes(content []byte, limit int) error {
	if len(content) <= limit {
		return nil
	}
	last := 0
	for _, at := range append(separator.FindAllIndex(content, -1), []int{len(content)}) {
		if at[0]-last > limit {
			return fmt.Errorf("%w: a document has more than %d bytes", ErrTooLarge, limit)
		}
		last = at[0]
	}
	return nil
}

func newDocument(node *yaml.Node) document {
	metadata := child(node, "metadata")
	return document{
		apiVersion: text(child(node, "apiVersion")), kind: text(child(node, "kind")),
		name: text(child(metadata, "name")), namespace: text(child(metadata, "namespace")),
		node: node,
	}
}

func child(node *yaml.Node, key string) *yaml.Node {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for n := 0; n+1 < len(node.Content); n += 2 {
		if node.Content[n].Value == key {
			return node.Content[n+1]
		}
	}
	return nil
}

// text returns the value of a scalar, or of an alias of one.
func text(node *yaml.Node) string {
	if node != nil && node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node == nil || node.Kind != yaml.ScalarNode {
		return ""
	}
	return node.Value
}

// checker walks a document's nodes and computes how many they would expand to.
type checker struct {
	limits  Limits
	cost    map[*yaml.Node]int  // nodes by anchor
	open    map[*yaml.Node]bool // anchors that are being walked
	aliased bool
}

func (c *checker) node(node *yaml.Node, depth int) (int, error) {
	if depth > c.limits.Depth {
		return 0, fmt.Errorf("%w: line %d is nested more than %d deep", ErrTooLarge, node.Line, c.limits.Depth)
	}
	if node.Kind == yaml.AliasNode {
		return c.alias(node, depth)
	}
	c.open[node] = true
	defer delete(c.open, node)
	if node.Kind == yaml.MappingNode {
		if err := keys(node); err != nil {
			return 0, err
		}
	}
	total := 1
	for _, sub := range node.Content {
		n, err := c.node(sub, depth+1)
		if err != nil {
			return 0, err
		}
		if total += n; c.aliased && total > c.limits.Aliases {
			return 0, fmt.Errorf("%w: line %d: YAML aliases expand to more than %d nodes", ErrTooLarge, node.Line, c.limits.Aliases)
		}
	}
	if node.Anchor != "" {
		c.cost[node] = total
	}
	return total, nil
}

func (c *checker) alias(node *yaml.Node, depth int) (int, error) {
	c.aliased = true
	if c.open[node.Alias] {
		return 0, fmt.Errorf("%w: line %d: the YAML alias %q refers to itself", ErrInvalid, node.Line, node.Value)
	}
	if cost, known := c.cost[node.Alias]; known {
		return cost, nil
	}
	return c.node(node.Alias, depth+1)
}

// keys refuses a mapping that has a key twice.
func keys(node *yaml.Node) error {
	seen := make(map[string]bool, len(node.Content)/2)
	for n := 0; n+1 < len(node.Content); n += 2 {
		key := node.Content[n]
		if key.Kind != yaml.ScalarNode {
			return fmt.Errorf("%w: line %d: a key is not a text", ErrInvalid, key.Line)
		}
		if seen[key.Value] {
			return fmt.Errorf("%w: line %d: the key %q is there twice", ErrInvalid, key.Line, clip(key.Value))
		}
		seen[key.Value] = true
	}
	return nil
}
