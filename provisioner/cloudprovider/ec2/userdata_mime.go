// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"
)

const (
	nodeConfigType   = "application/node.eks.aws"
	shellScriptType  = `text/x-shellscript; charset="us-ascii"`
	userDataBoundary = "//"

	contentType      = "Content-Type"
	transferEncoding = "Content-Transfer-Encoding"
)

// cloudInitTypes are the first words by which cloud-init knows what a text is.
var cloudInitTypes = map[string]string{
	"#cloud-config":   `text/cloud-config; charset="us-ascii"`,
	"#cloud-boothook": `text/cloud-boothook; charset="us-ascii"`,
	"#include":        `text/x-include-url; charset="us-ascii"`,
}

// mimePart is a part as it was written: its body is not decoded.
type mimePart struct {
	header textproto.MIMEHeader
	body   string
}

func newPart(contentTypeValue, body string) mimePart {
	return mimePart{header: textproto.MIMEHeader{contentType: {contentTypeValue}}, body: body}
}

// archive is a MIME archive: the class's own parts, then our NodeConfig, since nodeadm lets the last one win.
func (b *bootConfig) archive() (string, error) {
	parts, err := customParts(b.custom)
	if err != nil {
		return "", err
	}
	config, err := b.nodeConfig()
	if err != nil {
		return "", err
	}
	parts = append(parts, newPart(nodeConfigType, string(config)))
	boundary := freeBoundary(parts)
	var text strings.Builder
	text.WriteString("MIME-Version: 1.0\n" + contentType + ": multipart/mixed; boundary=\"" + boundary + "\"\n\n")
	for _, part := range parts {
		text.WriteString("--" + boundary + "\n")
		for _, key := range slices.Sorted(maps.Keys(part.header)) {
			text.WriteString(key + ": " + part.header.Get(key) + "\n")
		}
		text.WriteString("\n" + strings.TrimRight(part.body, "\r\n") + "\n")
	}
	text.WriteString("--" + boundary + "--\n")
	return text.String(), nil
}

// freeBoundary is Karpenter's, unless a body has it.
func freeBoundary(parts []mimePart) string {
	boundary := userDataBoundary
	for n := 1; slices.ContainsFunc(parts, func(p mimePart) bool { return strings.Contains(p.body, "--"+boundary) }); n++ {
		boundary = userDataBoundary + strconv.Itoa(n)
	}
	return boundary
}

// customParts reads a class's user data: a MIME archive, a NodeConfig, something for cloud-init, or a script. The error
// says why a machine could not boot with it.
func customParts(text string) ([]mimePart, error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		return nil, nil
	}
	if looksLikeMIME(trimmed) {
		return readMessage(trimmed)
	}
	line, _, _ := strings.Cut(trimmed, "\n")
	if known, ok := cloudInitTypes[strings.TrimSpace(line)]; ok {
		return []mimePart{newPart(known, trimmed)}, nil
	}
	document := map[string]any{}
	if strings.HasPrefix(trimmed, "#!") || yaml.Unmarshal([]byte(text), &document) != nil || len(document) == 0 {
		return []mimePart{newPart(shellScriptType, text)}, nil
	}
	if err := checkNodeConfig([]byte(text)); err != nil {
		return nil, err
	}
	return []mimePart{newPart(nodeConfigType, text)}, nil
}

func looksLikeMIME(text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	name, _, ok := strings.Cut(line, ":")
	return ok && (strings.EqualFold(name, "MIME-Version") || strings.EqualFold(name, contentType))
}

// readMessage reads an archive, or a message of a single part.
func readMessage(text string) ([]mimePart, error) {
	message, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("MIME headers: %w", err)
	}
	mediaType, params, err := mime.ParseMediaType(message.Header.Get(contentType))
	if err != nil {
		return nil, fmt.Errorf("MIME header %s: %w", contentType, err)
	}
	if strings.HasPrefix(mediaType, "multipart/") {
		boundary := params["boundary"]
		switch {
		case boundary == "":
			return nil, errors.New("MIME archive without a boundary")
		case !strings.Contains(text, "--"+boundary+"--"):
			return nil, fmt.Errorf("MIME archive without its end --%s--", boundary)
		}
		return readParts(message.Body, boundary)
	}
	body, err := io.ReadAll(message.Body)
	if err != nil {
		return nil, fmt.Errorf("MIME body: %w", err)
	}
	part := newPart(message.Header.Get(contentType), string(body))
	if encoding := message.Header.Get(transferEncoding); encoding != "" {
		part.header.Set(transferEncoding, encoding)
	}
	return []mimePart{part}, checkPart(part)
}

func readParts(body io.Reader, boundary string) ([]mimePart, error) {
	var parts []mimePart
	for reader := multipart.NewReader(body, boundary); ; {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		number := len(parts) + 1
		if err != nil {
			return nil, fmt.Errorf("MIME part %d: %w", number, err)
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, fmt.Errorf("MIME part %d: %w", number, err)
		}
		parts = append(parts, mimePart{header: part.Header, body: string(content)})
		if err := checkPart(parts[number-1]); err != nil {
			return nil, fmt.Errorf("MIME part %d: %w", number, err)
		}
	}
}

// checkPart reads what is meant for nodeadm; with a type or a NodeConfig that it cannot read no node would join.
func checkPart(part mimePart) error {
	for key, values := range part.header {
		control := func(r rune) bool { return r != '\t' && unicode.IsControl(r) }
		if strings.ContainsFunc(key, control) || strings.ContainsFunc(part.header.Get(key), control) {
			return fmt.Errorf("header %q: control character in %q", key, values)
		}
	}
	value := part.header.Get(contentType)
	if value == "" {
		return nil
	}
	mediaType, _, err := mime.ParseMediaType(value)
	if err != nil {
		return fmt.Errorf("%s %q: %w", contentType, value, err)
	}
	if mediaType != nodeConfigType {
		return nil
	}
	body := []byte(part.body)
	if strings.EqualFold(part.header.Get(transferEncoding), "base64") {
		if body, err = io.ReadAll(base64.NewDecoder(base64.StdEncoding, strings.NewReader(part.body))); err != nil {
			return fmt.Errorf("%s base64: %w", transferEncoding, err)
		}
	}
	return checkNodeConfig(body)
}
