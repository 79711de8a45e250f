package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/kubectl/pkg/cmd/util/editor"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/customization"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/tint"
	"github.com/flotilla-io/flotilla/internal/command"
)

// editOne edits the scripts of a single customization and writes them back to its file or the
// control plane.
func (f *interpretFlags) editOne(cmd *cobra.Command, sources []customization.Source) error {
	if len(sources) != 1 {
		return command.Usage(fmt.Errorf("--edit is for one customization at a time: there are %d", len(sources)))
	}
	s := sources[0]
	if s.File.Name == "-" {
		return command.Usage(errors.New("--edit writes back what it read: name a file, not the standard input"))
	}
	if s.File.Name != "" {
		// Fail before the edit if the file cannot be written back.
		if _, err := s.Written(s.Customization.Spec.Customizations); err != nil {
			return err
		}
	}
	edited, kept, err := f.editScripts(cmd.Context(), s.Customization)
	if err != nil {
		return err
	}
	diff, err := customization.Changes(s.Customization.Name, s.Customization.Spec.Customizations, edited)
	if err != nil {
		return err
	}
	if diff == "" {
		_, err := fmt.Fprintln(cmd.ErrOrStderr(), "nothing was changed")
		return errors.Join(err, os.Remove(kept))
	}
	printer := customization.Printer{Out: cmd.OutOrStdout(), Color: tint.Wanted(cmd.OutOrStdout())}
	if err := printer.Diff(diff); err != nil {
		return err
	}
	if s.File.Name == "" {
		err = f.store(cmd.Context(), s.Customization, edited)
	} else {
		err = write(s, edited)
	}
	if err != nil {
		return fmt.Errorf("%w; the edited scripts are in %s", err, kept)
	}
	return os.Remove(kept)
}

// editScripts lets the user edit until the scripts compile, and returns the scripts and the path of
// the edited file.
func (f *interpretFlags) editScripts(ctx context.Context, c *configv1alpha1.ResourceInterpreterCustomization) (configv1alpha1.CustomizationRules, string, error) {
	tool := editor.NewDefaultEditor([]string{"KUBE_EDITOR", "EDITOR"})
	text := customization.Document(c, f.showDoc)
	before := c.Spec.Customizations
	last, wrong := "", []string(nil)
	for {
		data, path, err := tool.LaunchTempFile("flotilla-interpret-", ".lua", strings.NewReader(text))
		if err != nil {
			return before, path, fmt.Errorf("edit %s: %w", path, err)
		}
		rules, err := customization.Scripts(string(data), before)
		switch {
		case errors.Is(err, customization.ErrGivenUp):
			return before, path, errors.Join(err, os.Remove(path))
		case err != nil:
			wrong = []string{err.Error()}
		default:
			wrong = customization.Wrong(&rules)
		}
		if len(wrong) == 0 {
			return rules, path, nil
		}
		if ctx.Err() != nil || string(data) == text || string(data) == last {
			return before, path, fmt.Errorf("nothing was written: %s; the edited scripts are in %s", strings.Join(wrong, "; "), path)
		}
		last = string(data)
		text = customization.Again(last, wrong)
		if err := os.Remove(path); err != nil {
			return before, path, err
		}
	}
}

// store writes scripts to the control plane, unless somebody else changed the
// customization meanwhile.
func (f *interpretFlags) store(ctx context.Context, c *configv1alpha1.ResourceInterpreterCustomization, rules configv1alpha1.CustomizationRules) error {
	hub, err := f.hub.Client()
	if err != nil {
		return fleet.Describe(err)
	}
	edited := c.DeepCopy()
	edited.Spec.Customizations = rules
	err = hub.Patch(ctx, edited, client.MergeFromWithOptions(c, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return fmt.Errorf("customization %s was changed meanwhile: edit it again", c.Name)
	}
	return fleet.Describe(err)
}

// write replaces the file of a customization atomically, unless somebody else changed it
// meanwhile.
func write(s customization.Source, rules configv1alpha1.CustomizationRules) error {
	content, err := s.Written(rules)
	if err != nil {
		return err
	}
	path, err := filepath.EvalSymlinks(s.File.Name)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	now, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, s.File.Content) {
		return fmt.Errorf("%s was changed meanwhile: edit it again", s.File.Name)
	}
	return replace(path, content, info.Mode().Perm())
}

// replace replaces a file atomically.
func replace(path string, content []byte, mode os.FileMode) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = temp.Write(content)
	err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}
