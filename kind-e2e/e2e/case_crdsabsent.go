// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var crdsAbsentCase = Case{
	Name:        "crds-absent",
	About:       "without Karpenter's CRDs it is a plain scheduler with one warning; they are picked up when they appear",
	WithoutCRDs: true,
	Run:         runCRDsAbsent,
}

// crdWarning is in the one line that says what is missing.
const crdWarning = "scheduling only"

func runCRDsAbsent(ctx context.Context, t *Trial) error {
	if err := t.removeCRDs(ctx); err != nil {
		return err
	}
	if err := t.AddNode(ctx, "existing", "4"); err != nil {
		return err
	}
	if err := t.Start(ctx); err != nil {
		return err
	}
	if err := t.Create(ctx, t.Pod("fits", "fits", "1"), t.Pod("needs", "needs", "20")); err != nil {
		return err
	}
	if err := t.WaitBound(ctx, "fits", 1, settleTimeout); err != nil {
		return err
	}
	if err := t.InstallCRDs(ctx); err != nil {
		return err
	}
	if err := t.Buyable(ctx); err != nil {
		return err
	}
	if err := t.WaitBound(ctx, "needs", 1, 90*time.Second); err != nil {
		return err
	}
	log, err := readLog(t.Product.Process)
	if err != nil {
		return err
	}
	if n := strings.Count(log, crdWarning); n != 1 {
		return fmt.Errorf("it warned %d times of missing CRDs, wanted once", n)
	}
	return nil
}

// removeCRDs removes what an earlier case has installed, and waits until it is not served.
func (t *Trial) removeCRDs(ctx context.Context) error {
	crds := t.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	return poll(ctx, settleTimeout, func(ctx context.Context) (string, error) {
		list, err := crds.List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		left := 0
		for i := range list.Items {
			if name := list.Items[i].GetName(); strings.Contains(name, "karpenter") {
				left++
				if err := crds.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
					return "", err
				}
			}
		}
		if left > 0 {
			return fmt.Sprintf("%d CRDs are left", left), nil
		}
		return "", nil
	})
}
