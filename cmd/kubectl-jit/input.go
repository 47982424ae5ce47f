// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// inputError is about what the user gave.
type inputError struct{ text string }

func (e *inputError) Error() string { return e.text }

func badInput(format string, args ...any) error { return &inputError{fmt.Sprintf(format, args...)} }

// document is one of a YAML file. JSON is YAML.
type document struct {
	file   string
	number int // from 1
	root   *yaml.Node
}

// readDocuments reads all that are not empty.
func readDocuments(file string, r io.Reader) ([]document, error) {
	var list []document
	decoder := yaml.NewDecoder(r)
	for n := 1; ; n++ {
		var node yaml.Node
		switch err := decoder.Decode(&node); {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return nil, notYAML(file, n, err)
		}
		if node.Kind == yaml.DocumentNode && len(node.Content) == 1 && node.Content[0].Tag != "!!null" {
			list = append(list, document{file, n, node.Content[0]})
		}
	}
}

// at is an error about a field of the document.
func (d document) at(path, format string, args ...any) error {
	return badInput("%s: document %d, line %d: %s: %s", d.file, d.number, d.line(path), path, fmt.Sprintf(format, args...))
}

// line is where the field is, or the nearest one around it.
func (d document) line(path string) int {
	node, _ := find(d.root, path)
	return node.Line
}

// value is the document as JSON has it.
func (d document) value() (map[string]any, error) {
	if d.root.Kind != yaml.MappingNode {
		return nil, badInput("%s: document %d, line %d: not an object", d.file, d.number, d.root.Line)
	}
	var object map[string]any
	if err := d.root.Decode(&object); err != nil {
		return nil, notYAML(d.file, d.number, err)
	}
	return object, nil
}

// notYAML is an error of the YAML package, whose texts begin with the line where it knows one.
func notYAML(file string, number int, err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if several, ok := errors.AsType[*yaml.TypeError](err); ok && len(several.Errors) > 0 {
		text = several.Errors[0]
	}
	if strings.HasPrefix(text, "line ") {
		return badInput("%s: document %d, %s", file, number, text)
	}
	return badInput("%s: document %d: %s", file, number, text)
}

// text is a scalar of the document, "" if it is not there.
func (d document) text(path string) string {
	if node, ok := find(d.root, path); ok && node.Kind == yaml.ScalarNode {
		return node.Value
	}
	return ""
}

// step is one of a field path: .name, [0] or [key].
var step = regexp.MustCompile(`\.?([^.\[\]]+)|\[([^\]]*)\]`)

// find follows a field path such as spec.kubelet.evictionHard[memory.available]; false with the last node on the way if
// it ends before. Some write the key of a map like a field, dots and all.
func find(node *yaml.Node, path string) (*yaml.Node, bool) {
	near := node
	names := namesOf(path)
	for len(names) > 0 {
		if node.Kind == yaml.AliasNode {
			node = node.Alias
		}
		key, next, used := child(node, names)
		if next == nil {
			return near, false
		}
		near, node, names = key, next, names[used:]
	}
	if node.Kind == yaml.ScalarNode {
		return node, true
	}
	return near, true
}

func namesOf(path string) []string {
	var names []string
	for _, match := range step.FindAllStringSubmatch(path, -1) {
		names = append(names, match[1]+match[2])
	}
	return names
}

// child is what the first of names, or some of them joined by dots, leads to; nil if nothing.
func child(node *yaml.Node, names []string) (key, value *yaml.Node, used int) {
	switch node.Kind {
	case yaml.MappingNode:
		for used = 1; used <= len(names); used++ {
			for i := 0; i+1 < len(node.Content); i += 2 {
				if node.Content[i].Value == strings.Join(names[:used], ".") {
					return node.Content[i], node.Content[i+1], used
				}
			}
		}
	case yaml.DocumentNode, yaml.ScalarNode, yaml.AliasNode: // nothing below
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(names[0]); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i], 1
		}
	}
	return nil, nil, 0
}

// pathOf is the field path under spec that a message begins with, and the rest of the message.
var pathOf = regexp.MustCompile(`^(spec(?:\.[A-Za-z]+|\[[^\]]*\])*)[: ]*(.*)$`)

// openInput opens a file, or takes in for "-"; the name is for messages.
func openInput(file string, in io.Reader) (io.ReadCloser, string, error) {
	if file == "-" {
		return io.NopCloser(in), "standard input", nil
	}
	opened, err := os.Open(file)
	if err != nil {
		return nil, "", badInput("%v", err)
	}
	return opened, file, nil
}
