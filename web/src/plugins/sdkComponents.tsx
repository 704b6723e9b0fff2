import {
  Divider,
  Group,
  Badge as MantineBadge,
  Button as MantineButton,
  Checkbox as MantineCheckbox,
  Tabs as MantineTabs,
  Modal,
  NativeSelect,
  Paper,
  Text,
  TextInput,
  Title,
} from "@mantine/core";
import { Link as RouterLink } from "@tanstack/react-router";
import { useTexts } from "@/i18n";
import { Icon } from "./Icon";
import { Slot } from "./Slot";
import type { PluginComponents } from "./types";

const BADGE_VARIANTS = { default: "light", secondary: "default", outline: "outline", destructive: "light" } as const;
const BUTTON_VARIANTS = { default: "filled", outline: "default", ghost: "subtle", destructive: "filled" } as const;
const BUTTON_SIZES = { sm: "xs", default: "sm", lg: "md", icon: "compact-sm" } as const;

const Dialog: PluginComponents["Dialog"] = ({ open, onOpenChange, title, size, children }) => {
  const texts = useTexts().general;
  return (
    <Modal
      opened={open}
      onClose={() => onOpenChange(false)}
      title={title}
      size={size}
      centered
      closeButtonProps={{ "aria-label": texts.close }}
    >
      {children}
    </Modal>
  );
};

const ConfirmDialog: PluginComponents["ConfirmDialog"] = ({ open, title, message, confirmLabel, ...answers }) => {
  const texts = useTexts().general;
  const { onConfirm, onCancel } = answers;
  return (
    <Modal opened={open} onClose={onCancel} title={title} centered closeButtonProps={{ "aria-label": texts.close }}>
      <Text component="div" mb="md">
        {message}
      </Text>
      <Group justify="flex-end">
        <MantineButton variant="default" onClick={onCancel} data-autofocus>
          {texts.cancel}
        </MantineButton>
        <MantineButton color="red" onClick={onConfirm}>
          {confirmLabel ?? texts.yes}
        </MantineButton>
      </Group>
    </Modal>
  );
};

/** The components of the SDK. */
export const components: PluginComponents = {
  Card: ({ children, ...rest }) => (
    <Paper withBorder bg="var(--panel)" p="md" {...rest}>
      {children}
    </Paper>
  ),
  CardHeader: ({ children, ...rest }) => (
    <Group justify="space-between" mb="sm" {...rest}>
      {children}
    </Group>
  ),
  CardTitle: ({ children, ...rest }) => (
    <Title order={3} size="h5" {...rest}>
      {children}
    </Title>
  ),
  CardContent: ({ children, ...rest }) => <div {...rest}>{children}</div>,
  Badge: ({ variant = "default", children, ...rest }) => (
    <MantineBadge variant={BADGE_VARIANTS[variant]} color={variant === "destructive" ? "red" : undefined} {...rest}>
      {children}
    </MantineBadge>
  ),
  Button: ({ variant = "default", size = "default", children, ...rest }) => (
    <MantineButton
      variant={BUTTON_VARIANTS[variant]}
      size={BUTTON_SIZES[size]}
      color={variant === "destructive" ? "red" : undefined}
      {...rest}
    >
      {children}
    </MantineButton>
  ),
  Checkbox: ({ onCheckedChange, children, label, ...rest }) => (
    <MantineCheckbox
      label={label ?? children}
      onChange={(event) => onCheckedChange?.(event.currentTarget.checked)}
      {...rest}
    />
  ),
  Input: ({ size: _size, ...rest }) => <TextInput {...rest} />,
  Label: ({ children, ...rest }) => (
    <Text component="label" size="sm" fw={500} {...rest}>
      {children}
    </Text>
  ),
  Select: ({ children, size: _size, ...rest }) => <NativeSelect {...rest}>{children}</NativeSelect>,
  SelectOption: ({ children, ...rest }) => <option {...rest}>{children}</option>,
  Separator: (rest) => <Divider {...rest} />,
  Tabs: ({ value, onValueChange, children, ...rest }) => (
    <MantineTabs value={value} onChange={(next) => next !== null && onValueChange(next)} {...rest}>
      {children}
    </MantineTabs>
  ),
  TabsList: ({ children, ...rest }) => <MantineTabs.List {...rest}>{children}</MantineTabs.List>,
  TabsTrigger: ({ children, ...rest }) => <MantineTabs.Tab {...rest}>{children}</MantineTabs.Tab>,
  PluginSlot: Slot,
  Dialog,
  DialogContent: ({ children, ...rest }) => <div {...rest}>{children}</div>,
  DialogHeader: ({ children, ...rest }) => <div {...rest}>{children}</div>,
  DialogTitle: ({ children, ...rest }) => (
    <Title order={2} size="h4" {...rest}>
      {children}
    </Title>
  ),
  DialogFooter: ({ children, ...rest }) => (
    <Group justify="flex-end" mt="md" {...rest}>
      {children}
    </Group>
  ),
  ConfirmDialog,
  Toast: ({ toast }) => (toast ? <Text role="status">{toast.message}</Text> : null),
  Icon,
  Link: ({ to, children, ...rest }) => (
    <RouterLink to={to as "/"} {...rest}>
      {children}
    </RouterLink>
  ),
};
