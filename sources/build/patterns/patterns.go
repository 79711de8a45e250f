// Package patterns weighs the regular expressions that kustomize compiles.
//
// In go kustomizations, and files of plugins and of replacements; out comes how much kustomize has to do for the expressions in them, or an
// error that names the field with one that is too large: kustomize compiles whatever it finds, which can take gigabytes. What is no
// expression is passed: kustomize says what is wrong with it. The package compiles none itself.
package patterns

import (
	"errors"
	"fmt"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/utils"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/flotilla-io/flotilla/policies/pattern"
	"github.com/flotilla-io/flotilla/sources/build/texts"
)

// Kustomization weighs what kustomize compiles for a kustomization.
func Kustomization(k types.Kustomization) (int, error) {
	var s scale
	for n, p := range k.Patches {
		s.selector(fmt.Sprintf("patches[%d].target", n), p.Target)
	}
	for n, p := range k.PatchesJson6902 {
		s.selector(fmt.Sprintf("patchesJson6902[%d].target", n), p.Target)
	}
	for n, image := range k.Images {
		s.image(fmt.Sprintf("images[%d].name", n), image.Name)
	}
	for n, r := range k.Replacements {
		for m, target := range r.Targets {
			s.target(fmt.Sprintf("replacements[%d].targets[%d]", n, m), target)
		}
	}
	return s.weight, s.err
}

// File weighs what kustomize compiles for a document in a file: of a plugin, or of replacements.
func File(document *yamlv3.Node) (int, error) {
	var s scale
	err := texts.Each(document, func(key, value string) error {
		s.text(key, value)
		return s.err
	})
	return s.weight, err
}

// scale adds up what expressions weigh, up to the first that is too large.
type scale struct {
	weight int
	err    error
}

// repeating are the characters without which an expression is done with at the first character that differs.
const repeating = "*+{|"

// expression takes a text as kustomize compiles it.
func (s *scale) expression(field, text string) {
	if s.err != nil {
		return
	}
	weight, err := pattern.Weigh(text)
	switch {
	case errors.Is(err, pattern.ErrTooLarge):
		s.err = fmt.Errorf("%s is %w", field, err)
	case strings.ContainsAny(text, repeating):
		s.weight += weight
	}
}

func (s *scale) anchored(field, text string) {
	if text == "" {
		return
	}
	s.expression(field, "^(?:"+text+")$")
}

func (s *scale) selector(field string, of *types.Selector) {
	if of == nil {
		return
	}
	s.anchored(field+".group", of.Group)
	s.anchored(field+".version", of.Version)
	s.anchored(field+".kind", of.Kind)
	s.anchored(field+".name", of.Name)
	s.anchored(field+".namespace", of.Namespace)
}

// ofImages is what kustomize puts behind the name of an image.
const ofImages = "(:[a-zA-Z0-9_.{}-]*)?(@sha256:[a-zA-Z0-9_.{}-]*)?$"

// image takes the name of an image, which is compiled anew for each image that it is compared with.
func (s *scale) image(field, name string) {
	own := scale{err: s.err}
	own.expression(field, "^"+name+ofImages)
	if s.err = own.err; strings.ContainsAny(name, repeating) {
		s.weight += own.weight
	}
}

func (s *scale) target(field string, of *types.TargetSelector) {
	if of == nil {
		return
	}
	s.selector(field+".select", of.Select)
	for n, reject := range of.Reject {
		s.selector(fmt.Sprintf("%s.reject[%d]", field, n), reject)
	}
	for n, path := range of.FieldPaths {
		s.path(fmt.Sprintf("%s.fieldPaths[%d]", field, n), path)
	}
}

// path takes the path of a field: in an entry such as [name=web.*] is an expression.
func (s *scale) path(field, path string) {
	for _, entry := range utils.SmarterPathSplitter(path, ".") {
		if !yaml.IsListIndex(entry) {
			continue
		}
		if _, text, err := yaml.SplitIndexNameValue(entry); err == nil {
			s.expression(field, text)
		}
	}
}

// text takes one below a key, whatever it is a part of: some are taken for expressions that are none.
func (s *scale) text(key, value string) {
	switch strings.ToLower(key) { // capitals are the same to kustomize
	case "group", "version", "kind", "namespace":
		s.anchored(key, value)
	case "name": // of a selector, or of an image
		s.anchored(key, value)
		s.image(key, value)
	case "fieldpaths":
		s.path(key, value)
	}
}
